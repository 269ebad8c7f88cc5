"""FlashMask's kernels in Triton's interpreter against float64, and compiled for Hopper without one."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from longca.masks.patterns import PATTERNS

pytest.importorskip("triton")
SPECIAL = (
    "empty rows",
    "more keys",
    "more queries",
    "one token",
    "nothing",
    "odd groups",
    "all of a group apart",
)


def run(program, **environment):
    """What one of the programs beside this file prints."""
    done = subprocess.run(
        [sys.executable, program],
        cwd=Path(__file__).parent,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def results():
    return run("flashmask_interpreted.py", TRITON_INTERPRET="1")


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    return run("flashmask_compiled.py", TRITON_CACHE_DIR=str(tmp_path_factory.mktemp("triton")))


@pytest.mark.parametrize("name", [*PATTERNS, *SPECIAL])
def test_agrees_with_float64(results, name):
    assert max(results[name]["errors"].values()) < 5e-6
    assert results[name]["empty_exact"]


def test_large_logits_cost_no_more_than_float32_does(results):
    assert max(results["large logits"]["errors"].values()) < 2e-4


def test_a_mask_reads_only_the_vectors_its_form_needs(results):
    forms = {
        "causal": "LTS",
        "causal_blockwise": "LTS LTE",
        "prefix_lm_causal": "LTS UTE",
        "global_sliding": "LTS UTS UTE",
    }
    assert {name: results[name]["form"] for name in forms} == forms


def test_hidden_blocks_are_skipped_up_to_the_last_cut_one(results):
    # 45 tokens, causal: rows in tiles of 32 over blocks of 16 keys, keys in blocks of 32 over tiles of 16 rows.
    steps = results["odd groups"]["steps"]
    assert steps["rows"] == [[0, 2, 2], [0, 3, 3]]
    assert steps["columns"] == [[0, 3, 3], [2, 3, 1]]


def test_query_heads_of_keys_that_all_see_are_dealt_out(results):
    assert results["all of a group apart"]["splits"] == 7
    assert results["full"]["splits"] == 1


@pytest.mark.parametrize("pattern", ["full", "causal_document"])
def test_the_adapter_passes_the_gate(results, pattern):
    assert results["adapter"][pattern]["wrong"] is None
    assert results["adapter"][pattern]["backend"].startswith("triton, columns LTS")


@pytest.mark.parametrize("variant", ["causal 128", "full 64", "global 128"])
def test_every_kernel_compiles_for_hopper(compiled, variant):
    kernels = compiled[variant]
    assert set(kernels) == {
        "spans_kernel",
        "transposed_spans_kernel",
        "forward_kernel",
        "queries_kernel",
        "keys_kernel",
    }
    for name, kernel in kernels.items():
        assert not kernel["serialized"], name
        # 255 registers are all there are: a change that needs many more must be seen.
        assert kernel["spilled_bytes"] <= (288 if name == "keys_kernel" else 0), name
        assert kernel["shared_bytes"] <= 227 << 10, name
