"""On a processor a run's jobs are forked from one process that imported torch; elsewhere each imports it itself."""

import psutil
import pytest
from workspace import TINY, Workspace

# A worker notes the process that it comes from.
NOTE = """    import torch
    import os
    import pathlib

    (pathlib.Path("parents") / str(os.getppid())).touch()
"""


@pytest.mark.parametrize(("device", "parents"), [("cpu", 1), ("auto", 2)])
def test_workers_of_a_run_come_from_one_process_on_a_processor(
    fresh: Workspace, monkeypatch: pytest.MonkeyPatch, device: str, parents: int
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    dense = {**TINY["dense"], "kernels": ["naive"], "seqlens": [64]}
    fresh.write_study({**TINY, "measure": {**TINY["measure"], "device": device}, "dense": dense})
    fresh.edit("workflow/longca/kernels/dense/naive.py", "    import torch\n", NOTE)
    (fresh.folder / "parents").mkdir()
    assert fresh.succeed("dense").jobs["measure_dense"] == 2
    found = [int(path.name) for path in (fresh.folder / "parents").iterdir()]
    assert len(found) == parents
    # Nothing is left of them, but for the lock.
    left = [psutil.Process(pid) for pid in found if psutil.pid_exists(pid)]
    assert psutil.wait_procs(left, timeout=60)[1] == []
    assert [path.name for path in (fresh.folder / "tmp").glob("longca-*")] == ["longca-timing-cpu.lock"]
