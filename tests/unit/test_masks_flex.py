"""The BlockMask made from slices: torch's own blocks, the right mask_mod, and the right attention."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from masks_strategy import cells, masks, predicate, slice_lists
from torch.nn.attention.flex_attention import BlockMask, create_block_mask, flex_attention

from longca.masks.blocks import draw_block_map
from longca.masks.mask import draw_mask
from longca.masks.patterns import PATTERNS
from longca.masks.slices import Slice
from longca.masks.views.flex_torch import block_mask, map_block_mask

PAIRS = (
    ("kv_num_blocks", "kv_indices"),
    ("full_kv_num_blocks", "full_kv_indices"),
    ("q_num_blocks", "q_indices"),
    ("full_q_num_blocks", "full_q_indices"),
)


def listed(blocks: BlockMask, pair: tuple[str, str]) -> list[list[list[int]]]:
    """The blocks of each row of each head."""
    counts, indices = (getattr(blocks, name)[0] for name in pair)
    return [
        [line[:count].tolist() for count, line in zip(head_counts.tolist(), head, strict=True)]
        for head_counts, head in zip(counts, indices, strict=True)
    ]


def torch_blocks(kept: np.ndarray, block: int) -> BlockMask:
    """What torch makes of [heads, queries, keys] cells, by looking at every one of them."""
    table = torch.from_numpy(kept.copy())
    heads, queries, keys = kept.shape
    return create_block_mask(
        lambda b, h, q, k: table[h, q, k], 1, heads, queries, keys, device="cpu", BLOCK_SIZE=block
    )


def assert_equal(ours: BlockMask, kept: np.ndarray, block: int) -> None:
    """The same blocks as torch's, in both orientations, and the same cells wherever a kernel may ask."""
    theirs = torch_blocks(kept, block)
    assert ours.shape == theirs.shape
    assert ours.BLOCK_SIZE == theirs.BLOCK_SIZE
    for pair in PAIRS:
        assert listed(ours, pair) == listed(theirs, pair), pair
        assert [getattr(ours, name).dtype for name in pair] == [torch.int32, torch.int32]
        assert getattr(ours, pair[1]).shape == getattr(theirs, pair[1]).shape
    head, query, key = torch.meshgrid(*(torch.arange(size) for size in kept.shape), indexing="ij")
    assert (ours.mask_mod(torch.tensor(0), head, query, key).numpy() == kept).all()


@settings(max_examples=60, deadline=None)
@given(masks(), st.sampled_from([16, 128]))
def test_blocks_and_cells_of_patterns_are_torchs_own(mask, block):
    ours = block_mask(mask.slices, mask.seqlen, mask.seqlen, block)
    assert_equal(ours, predicate(mask)[None], block)


@settings(max_examples=60, deadline=None)
@given(slice_lists(), st.integers(1, 5))
def test_blocks_and_cells_of_any_slices_are_torchs_own(drawn, block):
    slices, queries, keys = drawn
    assert_equal(block_mask(slices, queries, keys, block), cells(slices, queries, keys)[None], block)


@pytest.mark.parametrize(
    ("pattern", "seqlen", "block", "density"),
    [
        ("uniform_block", 512, 64, 0.25),
        ("uniform_block", 500, 64, 0.5),
        ("uniform_block", 129, 128, 0.5),
        ("variable_block", 1024, 128, 0.25),
        ("variable_block", 1100, 256, 0.5),
    ],
)
@pytest.mark.parametrize("group", [1, 3])
def test_blocks_and_cells_of_block_maps_are_torchs_own(pattern, seqlen, block, density, group):
    drawn = draw_block_map(pattern, seqlen, block, density, kv_heads=2)
    kept = np.stack([cells(drawn.slices(head), seqlen, seqlen) for head in range(2)]).repeat(group, 0)
    ours = map_block_mask(drawn, 2 * group)
    assert_equal(ours, kept, block if pattern == "uniform_block" else 128)
    if pattern == "uniform_block" and seqlen % block == 0:
        assert not ours.kv_num_blocks.any()


def attention(q, k, v, kept):
    """Float64 softmax attention; a query that sees nothing gives 0."""
    scores = (q.double() @ k.double().mT / q.shape[-1] ** 0.5).masked_fill(~kept, float("-inf"))
    return torch.nan_to_num(scores.softmax(-1)) @ v.double()


def run(compiled, blocks, kept):
    """Compiled attention agrees with float64 on the cells `kept`, bool [length, length]."""
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 1, 2, len(kept), 16)
    error = compiled(q, k, v, block_mask=blocks).double() - attention(q, k, v, torch.from_numpy(kept.copy()))
    assert error.abs().max() < 1e-5


@pytest.fixture(scope="module")
def compiled():
    torch._dynamo.reset()
    return torch.compile(flex_attention, dynamic=False, fullgraph=True)


# A kernel compiled for a group's first pattern serves the rest: windows, one interval a query, two intervals.
SHARING = (
    ("causal", "full", "full_sliding_window", "causal_sliding_window"),
    (
        "causal_document",
        "full_document",
        "causal_blockwise",
        "prefix_lm_causal",
        "prefix_lm_document",
        "block_causal_document",
    ),
    ("shared_question", "global_sliding"),
)


@pytest.mark.parametrize("group", SHARING)
def test_compiled_kernels_are_right_and_shared_between_patterns(group, compiled):
    sizes = {"window": 40, "global_tokens": 9, "block": 50, "prefix": 70}
    for name in group:
        pattern = PATTERNS[name]
        mask = draw_mask(
            name,
            300,
            parameters={key: sizes[key] for key in pattern.parameters},
            documents=[90, 1, 130, 79] if pattern.has_documents else None,
        )
        with torch.compiler.set_stance("default" if name == group[0] else "fail_on_recompile"):
            run(compiled, block_mask(mask.slices, 300, 300), predicate(mask))


def test_every_pattern_is_in_one_group():
    assert sorted(name for group in SHARING for name in group) == sorted(PATTERNS)


def test_compiled_kernels_give_0_to_queries_that_see_nothing(compiled):
    """The first block of queries has no block of keys, the second some queries without keys."""
    slices = [Slice(130, 170, 0, 90, "causal"), Slice(200, 290, 100, 130, "inv_causal")]
    run(compiled, block_mask(slices, 300, 300), cells(slices, 300, 300))


GROWTH = """
import torch
from pathlib import Path
from longca.masks.mask import draw_mask
from longca.masks.views.flex_torch import block_mask
mask = draw_mask("causal_document", 524288)
peak = lambda: int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
before = peak()
blocks = block_mask(mask.slices, mask.seqlen, mask.seqlen)
print(1024 * (peak() - before))
assert blocks.kv_indices.shape == (1, 1, 4096, 4096)
kept = 128 * 128 * int(blocks.full_kv_num_blocks.sum())
assert kept <= mask.area <= kept + 128 * 128 * int(blocks.kv_num_blocks.sum())
assert blocks.q_num_blocks.sum() == blocks.kv_num_blocks.sum()
assert blocks.full_q_num_blocks.sum() == blocks.full_kv_num_blocks.sum()
"""


def test_long_document_masks_take_memory_by_their_blocks():
    """At 524288 tokens the cells are 2.7e11 and the block grid 1.7e7; the documents fill 23 % of it."""
    ran = subprocess.run([sys.executable, "-c", GROWTH], check=True, capture_output=True, text=True)
    assert 50e6 < int(ran.stdout) < 300e6
