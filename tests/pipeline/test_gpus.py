"""A machine of several GPUs: a series on each at a time; and never two series on one processor."""

import re
from pathlib import Path

import pytest
from workspace import TINY, Workspace

GPUS = ["GPU-aa01", "GPU-bb02"]
# Each worker notes the GPU it was given, and goes on once there are two; one that is alone does after its deadline.
NOTE = """    import torch
    import os
    import pathlib
    import time

    (pathlib.Path("given") / os.environ["CUDA_VISIBLE_DEVICES"]).touch()
    deadline = time.monotonic() + 300
    while len(list(pathlib.Path("given").iterdir())) < 2 and time.monotonic() < deadline:
        time.sleep(0.1)
"""


@pytest.fixture
def two_gpus(fresh: Workspace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Workspace:
    """A checkout on a machine whose nvidia-smi lists two GPUs."""
    tool = tmp_path / "bin" / "nvidia-smi"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\nprintf '%s\\n' " + " ".join(GPUS))
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tool.parent), prepend=":")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return fresh


def measured_on(workspace: Workspace, device: str) -> None:
    measure = {**TINY["measure"], "device": device}
    dense = {**TINY["dense"], "kernels": ["naive"], "seqlens": [64]}
    workspace.write_study({**TINY, "measure": measure, "dense": dense})


def test_two_series_are_measured_at_once_each_on_a_gpu_of_its_own(two_gpus: Workspace) -> None:
    # Where torch finds no GPU, auto computes on the processor: what is told apart here is who was given which.
    measured_on(two_gpus, "auto")
    two_gpus.edit("workflow/longca/kernels/dense/naive.py", "    import torch\n", NOTE)
    (two_gpus.folder / "given").mkdir()
    two_gpus.succeed("dense", "--cores", "2")
    assert sorted(path.name for path in (two_gpus.folder / "given").iterdir()) == GPUS


@pytest.mark.parametrize(("device", "threads"), [("auto", "3"), ("cuda", "3"), ("cpu", "6")])
def test_a_gpu_has_its_share_of_the_cores_and_a_processor_all(
    two_gpus: Workspace, device: str, threads: str
) -> None:
    measured_on(two_gpus, device)
    output = two_gpus.succeed("dense", "-n", "--cores", "6").output
    assert re.findall(r"rule measure_dense:\n(?:    .*\n)*?    threads: (\d+)", output) == [threads] * 2
