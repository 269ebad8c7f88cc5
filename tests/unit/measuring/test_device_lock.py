"""Each measurement has a GPU of its own, and a processor is one measurement's: by locks that other processes hold."""

import os
import subprocess
import sys
import tempfile
from contextlib import contextmanager

import pytest
from typer.testing import CliRunner

from longca.cli.main import app
from longca.errors import LongcaError
from longca.measure import question
from longca.measure.budget import Budget, OutOfBudgetError
from longca.measure.device_lock import timing_lock
from longca.measure.device_probe import gpus, has_gpu, visible_gpus

GPUS = ["GPU-aa01", "GPU-bb02", "GPU-cc03", "GPU-dd04"]
HOLD = (
    "import os, sys\n"
    "from longca.measure.device_lock import timing_lock\n"
    "with timing_lock(sys.argv[1], gpus=int(sys.argv[2])):\n"
    "    print(os.environ.get('CUDA_VISIBLE_DEVICES', 'no GPU'), flush=True)\n"
    "    sys.stdin.read()\n"
)


@pytest.fixture(autouse=True)
def own_locks(monkeypatch, tmp_path):
    """What is measured elsewhere on this machine is not waited for."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


@pytest.fixture
def four_gpus(monkeypatch, tmp_path):
    """An nvidia-smi that lists four."""
    tool = tmp_path / "bin" / "nvidia-smi"
    tool.parent.mkdir()
    said = {"name,memory.total": [f"{gpu[4:]}, 141 GiB" for gpu in GPUS], "uuid": GPUS}
    answers = (f"*={fields}) printf '%s\\n' '" + "' '".join(lines) + "';;" for fields, lines in said.items())
    tool.write_text('#!/bin/sh\ncase "$1" in\n' + "\n".join(answers) + "\nesac\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:{os.environ['PATH']}")


@contextmanager
def holder(device, count=1):
    """What another process holds, as long as this lasts."""
    command = [sys.executable, "-c", HOLD, device, str(count)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process.stdout.readline().strip().split(",")
        process.stdin.close()


@pytest.mark.parametrize(
    ("variable", "seen"),
    [
        (None, GPUS),
        ("", []),
        ("2,0", ["GPU-cc03", "GPU-aa01"]),
        ("GPU-bb", ["GPU-bb02"]),
        ("1,7,0", ["GPU-bb02"]),
        ("MIG-3f,1", ["MIG-3f", "GPU-bb02"]),
        ("NoDevFiles", []),
    ],
)
def test_what_a_process_may_use_is_what_cuda_would_show_it(four_gpus, monkeypatch, variable, seen):
    if variable is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", variable)
    assert visible_gpus() == seen
    assert has_gpu() == bool(seen)
    assert gpus() == [one if one.startswith("MIG") else f"{one[4:]}, 141 GiB" for one in seen]


@pytest.mark.parametrize(("variable", "device"), [("", "cpu"), ("1", "cuda")])
def test_auto_means_a_device_that_a_process_may_use(four_gpus, monkeypatch, variable, device):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", variable)
    monkeypatch.setenv("COLUMNS", "300")
    assert f"here ({device})" in CliRunner().invoke(app, ["kernels"], catch_exceptions=False).output

    def lock(asked):
        raise LongcaError(f"a lock of {asked}")

    monkeypatch.setattr(question, "timing_lock", lock)
    with pytest.raises(LongcaError, match=f"a lock of {device}"):
        question.ask(question.Question([], "causal", "64", "auto", None, None, None, "auto"))


def test_each_measurement_gets_a_gpu_of_its_own(four_gpus, monkeypatch):
    """Whatever a launcher called the GPUs: two jobs of one node may both know theirs as number 0."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    with holder("cuda") as first, timing_lock("cuda"):
        assert [first, os.environ["CUDA_VISIBLE_DEVICES"]] == [["GPU-aa01"], "GPU-bb02"]
        with pytest.raises(OutOfBudgetError), timing_lock("cuda", Budget.of(0.2)):
            pass
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
        with timing_lock("auto", Budget.of(0.2)):
            assert os.environ["CUDA_VISIBLE_DEVICES"] == "GPU-dd04"
        assert os.environ["CUDA_VISIBLE_DEVICES"] == "3"


def test_ranks_get_as_many_gpus_as_they_are_and_hold_none_while_they_wait(four_gpus):
    with holder("cuda") as first, holder("cuda", 2) as two:
        assert {*first, *two} == set(GPUS[:3])
        with pytest.raises(OutOfBudgetError), timing_lock("cuda", Budget.of(0.2), gpus=2):
            pass
        with timing_lock("cuda", Budget.of(0.2)):
            assert os.environ["CUDA_VISIBLE_DEVICES"] == "GPU-dd04"
    with timing_lock("cuda", gpus=None):
        assert os.environ["CUDA_VISIBLE_DEVICES"].split(",") == GPUS
    with pytest.raises(LongcaError, match="5 GPUs are needed, 4 are here"), timing_lock("cuda", gpus=5):
        pass
    assert "CUDA_VISIBLE_DEVICES" not in os.environ


def test_a_processor_is_one_measurements(four_gpus):
    with holder("cpu") as first:
        assert first == ["no GPU"]
        with pytest.raises(OutOfBudgetError), timing_lock("cpu", Budget.of(0.2)):
            pass


def test_a_lock_goes_with_its_process(four_gpus):
    command = [sys.executable, "-c", HOLD, "cuda", "4"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline().strip().split(",") == GPUS
    process.kill()
    with timing_lock("cuda", Budget.of(60), gpus=4):
        assert process.wait() == -9
