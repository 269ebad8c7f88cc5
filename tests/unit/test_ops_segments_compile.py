"""Both kernel pairs compile for Hopper without one, so that a mistake in a kernel is found on any machine."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton")
# "after": the backward's heads one after another, else all heads of a row together
GLUON = [
    "gluon 128",
    "gluon 64",
    "gluon narrow",
    "gluon deterministic",
    "gluon deterministic long",
    "gluon whole",
    "gluon tall",
    "gluon tall whole",
    "gluon whole after",
    "gluon 64 whole after",
    "gluon 128 after",
    "gluon 64 after",
    "gluon deterministic after",
]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    run = subprocess.run(
        [sys.executable, "segments_compiled.py"],
        cwd=Path(__file__).parent,
        env={**os.environ, "TRITON_CACHE_DIR": str(tmp_path_factory.mktemp("triton"))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-3000:]
    return json.loads(run.stdout)


@pytest.mark.parametrize("variant", [*GLUON, "triton 128"])
def test_every_kernel_compiles(compiled, variant):
    forward = "tall_forward_kernel" if "tall" in variant else "forward_kernel"
    assert {forward, "backward_kernel", "prepare_kernel"} <= set(compiled[variant])
    assert ("queries_kernel" in compiled[variant]) == ("deterministic" in variant)


@pytest.mark.parametrize("variant", GLUON)
def test_matrix_products_stay_asynchronous(compiled, variant):
    for name, kernel in compiled[variant].items():
        assert not kernel["serialized"], name


def test_few_registers_are_spilled(compiled):
    # 240 registers are all there are, 160 for three warpgroups: a change that needs many more must be seen.
    assert compiled["gluon 128"]["forward_kernel"]["spilled_bytes"] <= 32
    assert compiled["gluon 128"]["backward_kernel"]["spilled_bytes"] <= 192
    assert compiled["gluon 128 after"]["backward_kernel"]["spilled_bytes"] <= 224
    assert compiled["gluon whole"]["forward_kernel"]["spilled_bytes"] == 0
    assert compiled["gluon tall"]["tall_forward_kernel"]["spilled_bytes"] <= 96
    assert compiled["gluon tall whole"]["tall_forward_kernel"]["spilled_bytes"] == 0
    assert compiled["gluon whole after"]["backward_kernel"]["spilled_bytes"] <= 64
    assert compiled["gluon 64"]["backward_kernel"]["spilled_bytes"] <= 352
    assert compiled["gluon 64 after"]["backward_kernel"]["spilled_bytes"] <= 352
    assert compiled["gluon deterministic"]["backward_kernel"]["spilled_bytes"] <= 128
    assert compiled["gluon deterministic after"]["backward_kernel"]["spilled_bytes"] <= 128


def test_the_two_orders_are_two_kernels(compiled):
    # each compiled without the other's loops, or the order would cost registers where it is not walked
    inside, after = (
        compiled[name]["backward_kernel"] for name in ("gluon deterministic", "gluon deterministic after")
    )
    assert inside["digest"] != after["digest"]
