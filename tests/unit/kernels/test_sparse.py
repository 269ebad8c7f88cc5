"""Block-sparse kernels compute each KV head's own map, forward and gradients."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from longca.cases import Case
from longca.kernels.registry import load_kernel
from longca.kernels.sparse.segments import kept_of_pairs
from longca.masks.blocks import draw_block_map
from longca.measure.tensors import draw_tensors
from longca.measure.verify import Verifier

CPU = torch.device("cpu")


def verdict(kernel, pattern, seqlen, block, heads, ran_seed=42):
    """A kernel's verdict on a map; it runs the map of `ran_seed`, the oracle that of 42."""
    maps = [draw_block_map(pattern, seqlen, block, 0.3, heads[1], seed, 0) for seed in (42, ran_seed)]
    case = Case("sparse", kernel, "auto", pattern, seqlen, 0, *heads, 64, "float32", "forward", block, 0.3)
    gradients = "backward" in load_kernel("sparse", kernel).support.passes["cpu"]
    tensors = draw_tensors(case, CPU, gradients)
    prepared = load_kernel("sparse", kernel).prepare(case, maps[1], tensors)
    return Verifier(case, maps[0], tensors).check(prepared, gradients)


@pytest.mark.parametrize("heads", [(4, 2), (2, 2), (7, 1)])
@pytest.mark.parametrize(
    ("pattern", "seqlen", "block"), [("uniform_block", 1000, 64), ("variable_block", 1500, 300)]
)
def test_segments(pattern, seqlen, block, heads):
    assert verdict("segments", pattern, seqlen, block, heads).wrong is None


@pytest.mark.parametrize(
    ("pattern", "seqlen", "block"), [("uniform_block", 1024, 128), ("variable_block", 1024, 256)]
)
def test_flex(pattern, seqlen, block):
    assert verdict("flex", pattern, seqlen, block, (4, 2)).wrong is None


def test_another_map_than_the_cells_does_not_pass():
    assert "out errs" in verdict("segments", "uniform_block", 1000, 64, (4, 2), ran_seed=7).wrong


def test_pairs_of_block_rows_keep_what_either_keeps():
    drawn = draw_block_map("uniform_block", 320, 64, 0.5, 2)
    kept = np.zeros((2, 5, 5), dtype=bool)
    kept[0, 0, :2] = kept[0, 1, 1] = kept[1, 4, 3] = (
        True  # a pair with three blocks of four, one row without a pair
    )
    assert kept_of_pairs(replace(drawn, kept=kept)) == 4 / 6
    assert kept_of_pairs(replace(drawn, kept=np.ones_like(kept))) == 25 / 30
    assert kept_of_pairs(replace(drawn, kept=np.zeros_like(kept))) == 1.0
