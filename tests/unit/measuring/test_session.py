"""Real worker processes with kernels that are right, wrong and broken: each costs its case, and no other."""

from dataclasses import replace
from pathlib import Path

import pytest

from longca.cases import Case
from longca.errors import LongcaError
from longca.files import write_atomically
from longca.masks.mask import draw_mask, mask_to_json
from longca.measure.session import KernelSession
from longca.study.model import Protocol

pytestmark = pytest.mark.usefixtures("fake_kernels")

PROTOCOL = Protocol(device="cpu", warmups=1, repetitions=3, threads=1)
CASE = Case("dense", "", "auto", "causal_sliding_window", 64, 0, 4, 2, 64, "float32", "forward")


class Asked:
    """A session and a folder of masks."""

    def __init__(self, kernel: str, folder: Path, protocol: Protocol = PROTOCOL) -> None:
        self.session, self.folder = KernelSession("dense", kernel, protocol), folder
        self.protocol = protocol

    def measure(self, seqlen: int, pass_: str = "forward", timeout_s: float = 120):
        case = replace(CASE, kernel=self.session.kernel, seqlen=seqlen, pass_=pass_)
        mask = draw_mask(case.pattern, seqlen, parameters={"window": 20})
        path = self.folder / f"{seqlen}.json"
        write_atomically(path, mask_to_json(mask))
        return self.session.measure(case, mask, path, timeout_s)[0]


@pytest.fixture
def ask(tmp_path):
    started = []

    def start(kernel, **options):
        started.append(Asked(kernel, tmp_path, **options))
        return started[-1]

    yield start
    for one in started:
        one.session.close()


def test_a_right_kernel_is_ok_with_every_number(ask):
    asked = ask("right")
    for pass_, factor in (("forward", 4), ("backward", 10)):
        record = asked.measure(96, pass_)
        assert record.status == "ok" and record.reason is None
        assert len(record.samples_ms) == 3
        assert record.tflops == pytest.approx(
            factor * record.area * 4 * 64 / record.latency_ms.p50 / 1e9, rel=1e-5
        )
        assert (
            set(record.relative_error) == {"out", "dq", "dk", "dv"}
            and None not in record.relative_error.values()
        )
        assert record.latency_ms.p20 <= record.latency_ms.p50 <= record.latency_ms.p80
        assert record.environment["threads"] == 1 and record.environment["versions"]["torch"]
    # Scores [4, 96, 96] in float32, twice over: the backward weighs its forward too.
    assert record.peak_memory_bytes > 2 * 4 * 96 * 96 * 4


@pytest.mark.parametrize(
    ("kernel", "status", "reason"),
    [
        ("raises", "crashed", "RuntimeError: no plan for this"),
        ("says_no", "unsupported", "not for you"),
        ("falls_back", "fallback", "math ran"),
        ("off_by_one", "wrong", "out errs by"),
        ("not_finite", "wrong", "out is not finite"),
        ("writes_inputs", "wrong", "out errs by"),
        ("rounds_inputs", "wrong", "out errs by"),
        ("turns_wrong", "wrong", "after it was timed, out errs by"),
        ("says_nothing", "unsupported", "UnsupportedError"),
        ("leaves_a_child", "crashed", "ended with exit code 3"),
        ("broken", "missing", "kernel broken: ImportError: built for another ABI"),
        ("empty", "missing", "kernel empty: AttributeError"),
        ("absent", "missing", "ModuleNotFoundError: No module named 'no_such_library'"),
        (
            "kills_on_import",
            "crashed",
            "while importing its library: the worker was killed by SIGSEGV",
        ),
    ],
)
def test_what_is_not_ok_is_a_word_with_its_reason(ask, kernel, status, reason):
    record = ask(kernel).measure(64)
    assert record.status == status and reason in record.reason
    assert record.tflops is record.latency_ms is record.samples_ms is record.peak_memory_bytes is None
    assert record.area == draw_mask("causal_sliding_window", 64, parameters={"window": 20}).area
    assert record.environment["device"]


def test_a_wrong_backward_spoils_both_passes(ask):
    asked = ask("wrong_backward")
    for pass_ in ("forward", "backward"):
        record = asked.measure(64, pass_)
        assert record.status == "wrong" and record.reason.startswith("dk errs by")
        assert record.relative_error["out"] < 1e-5 < 5e-3 < record.relative_error["dk"]


@pytest.mark.parametrize(
    ("kernel", "status"), [("segfault", "crashed"), ("hang", "timeout"), ("memory", "out_of_memory")]
)
def test_a_case_lost_is_one_case(ask, kernel, status):
    asked = ask(kernel)
    assert asked.measure(32).status == "ok"
    lost = asked.measure(64, timeout_s=5 if kernel == "hang" else 120)
    assert lost.status == status
    assert {"crashed": "SIGSEGV", "timeout": "no answer within 5 s", "out_of_memory": "allocate"}[
        status
    ] in lost.reason
    assert asked.measure(32).status == "ok"


def test_after_an_error_the_next_case_has_a_process_of_its_own(ask):
    asked = ask("breaks_the_process")
    assert asked.measure(32).status == "ok"
    assert asked.measure(64).reason == "RuntimeError: the device is in error"
    assert asked.measure(96).status == "ok"


@pytest.mark.parametrize(
    ("kernel", "status"),
    [
        ("backward_memory", "out_of_memory"),
        ("no_backward_after_all", "unsupported"),
        ("backward_segfault", "crashed"),
    ],
)
def test_a_forward_whose_backward_fails_says_that_gradients_are_unverified(ask, kernel, status):
    asked = ask(kernel)
    record = asked.measure(64)
    assert record.status == "ok" and record.flags.count("gradients_unverified") == 1
    assert record.relative_error["out"] < 1e-5 and record.relative_error["dq"] is None
    assert asked.measure(64, "backward").status == status


def test_a_fork_that_comes_back_answers_nothing(ask):
    asked = ask("stays_forked")
    first, second = asked.measure(64), asked.measure(96)
    assert first.status == second.status == "ok"
    assert first.relative_error != second.relative_error
    assert asked.measure(96, "backward").status == "ok"


def test_what_libraries_print_does_not_reach_the_answers(ask):
    assert ask("noisy_stdout").measure(64).status == "ok"


def test_what_the_kernel_declares_is_asked_first(ask, tmp_path):
    asked = ask("right")
    case = replace(CASE, kernel="right", dtype="float16")
    record, _ = asked.session.measure(case, draw_mask(case.pattern, 64), tmp_path / "no such file", 120)
    assert (
        record.status == "unsupported"
        and record.reason == "does not compute in float16, only in bfloat16, float32"
    )


def test_a_device_that_is_not_there_is_an_error(tmp_path):
    import torch

    if torch.cuda.is_available():
        pytest.skip("has a GPU")
    with pytest.raises(LongcaError, match="no worker starts on device cuda"):
        Asked("right", tmp_path, Protocol(device="cuda")).measure(64)
