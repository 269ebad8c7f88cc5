"""The portable kernels, forward and backward, in Triton's interpreter against float64."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from longca.masks.patterns import PATTERNS

pytest.importorskip("triton")
HERE = Path(__file__).parent
SPECIAL = ("empty rows", "more keys", "more queries", "one token", "nothing")


@pytest.fixture(scope="module")
def results():
    run = subprocess.run(
        [sys.executable, "segments_interpreted.py"],
        cwd=HERE,
        env={**os.environ, "TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    return json.loads(run.stdout)


@pytest.mark.parametrize("name", [*PATTERNS, *SPECIAL, "a mask for each KV head", "deterministic"])
def test_agrees_with_float64(results, name):
    assert max(results[name]["errors"].values()) < 5e-6
    assert results[name]["empty_exact"]


@pytest.mark.parametrize("dim", [64, 128])
def test_the_cast_undoes_the_order_of_the_hopper_kernels_dq(results, dim):
    assert results[f"fragments {dim}"] == 0
