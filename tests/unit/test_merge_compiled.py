"""The merge of partial results, compiled for Hopper on any machine: in what order it touches memory."""

import json
import subprocess
import sys
from pathlib import Path

import pytest


def test_the_fused_kernel_writes_nothing_that_another_warp_still_reads():
    # In place, and with several warps that read the same rows: all is read before a barrier, and written after it.
    pytest.importorskip("triton")
    run = subprocess.run(
        [sys.executable, "merge_compiled.py"], cwd=Path(__file__).parent, capture_output=True, text=True
    )
    assert run.returncode == 0, run.stderr
    orders = json.loads(run.stdout)
    assert len(orders) == 8
    for order in orders:
        barrier = order.index("ba")
        assert set(order[:barrier]) == {"ld"}
        assert set(order[barrier + 1 :]) == {"st"}
