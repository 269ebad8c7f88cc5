"""Our Video Sparse Attention on a GPU against float64: MHA, odd and even groups, ragged lengths, empty rows.

python -m pytest tests/gpu -m gpu
"""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent.parent / "unit"))
from segments_cases import dense, kept

from longca.masks.blocks import draw_block_map
from longca.ops import video_sparse

pytestmark = pytest.mark.gpu

SHAPES = [
    (4, 4, 128, torch.bfloat16),
    (8, 2, 128, torch.bfloat16),
    (28, 7, 128, torch.float16),
    (3, 1, 128, torch.bfloat16),
    (2, 2, 64, torch.bfloat16),
    (8, 1, 64, torch.float16),
]


def draw(heads, rows, dim, dtype, seed):
    generator = torch.Generator("cuda").manual_seed(seed)
    return torch.randn(heads, rows, dim, device="cuda", generator=generator).to(dtype)


def run(block_map, q_heads, dim, dtype, form=None):
    seqlen, kv_heads = block_map.seqlen, block_map.kv_heads
    q, dout = draw(q_heads, seqlen, dim, dtype, 1), draw(q_heads, seqlen, dim, dtype, 2)
    k, v = draw(kv_heads, seqlen, dim, dtype, 3), draw(kv_heads, seqlen, dim, dtype, 4)
    plan = video_sparse.plan(block_map, q_heads, dim, q.device, form)
    out, lse = video_sparse.forward(q, k, v, plan)
    return (q, k, v, dout), out, lse, video_sparse.backward(q, k, v, out, lse, dout, plan)


def cut_out(block_map):
    """The map without its first head's first row of blocks and its last head's last column."""
    cut = block_map.kept.copy()
    cut[0, 0, :], cut[-1, :, -1] = False, False
    return replace(block_map, kept=cut)


def compare(block_map, q_heads, dim, dtype, form):
    """Both passes against float64; rows and keys that keep nothing are exact."""
    seqlen, kv_heads = block_map.seqlen, block_map.kv_heads
    inputs, out, lse, gradients = run(block_map, q_heads, dim, dtype, form)
    by_head = torch.stack([kept(block_map.slices(head), seqlen, seqlen) for head in range(kv_heads)]).cuda()
    want = dense(*inputs, by_head.repeat_interleave(q_heads // kv_heads, 0))
    empty, unseen = want[1].isinf(), ~by_head.any(1)
    # 16-bit products alone cost 2 to 4e-3
    for a, b in zip((out, *gradients), (want[0], *want[2:]), strict=True):
        assert (a.double() - b).norm() <= 6e-3 * max(b.norm(), 1)
    assert torch.equal(lse == -torch.inf, empty)
    assert torch.where(empty, 0.0, lse - want[1]).abs().max() < 1e-3
    assert (out[empty] == 0).all() and (gradients[0][empty] == 0).all()
    assert (gradients[1][unseen] == 0).all() and (gradients[2][unseen] == 0).all()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    ("seqlen", "density"), [(1, 1.0), (64, 1.0), (137, 1.0), (1024, 0.25), (1025, 0.3), (2000, 0.5)]
)
@pytest.mark.parametrize("holes", [False, True])
def test_triton_agrees_with_float64(shape, seqlen, density, holes):
    q_heads, kv_heads, dim, dtype = shape
    block_map = draw_block_map("uniform_block", seqlen, 64, density, kv_heads)
    compare(cut_out(block_map) if holes else block_map, q_heads, dim, dtype, "triton")


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("group", [1, 4, 8])
@pytest.mark.parametrize("seqlen", [64, 192, 1024])
@pytest.mark.parametrize("density", [0.25, 1.0])
@pytest.mark.parametrize("holes", [False, True])
def test_gluon_agrees_with_float64(dtype, group, seqlen, density, holes):
    block_map = draw_block_map("uniform_block", seqlen, 64, density, 2)
    compare(cut_out(block_map) if holes else block_map, 2 * group, 128, dtype, "gluon")


def test_gluon_takes_lists_of_every_length():
    # rows of 0 to 15 blocks: more and fewer than the steps of copies in flight, odd and even
    drawn = draw_block_map("uniform_block", 1024, 64, 1.0, 2)
    kept_blocks = drawn.kept & (np.arange(16) < np.arange(16)[:, None])
    compare(replace(drawn, kept=kept_blocks), 8, 128, torch.bfloat16, "gluon")


def test_hopper_takes_the_gluon_form():
    block_map = draw_block_map("uniform_block", 1024, 64, 0.25, 2)
    hopper = torch.cuda.get_device_capability() == (9, 0)
    form = video_sparse.plan(block_map, 8, 128, torch.device("cuda")).form
    assert form == ("gluon" if hopper else "triton")


def test_gradients_repeat_bit_for_bit():
    block_map = draw_block_map("uniform_block", 4096, 64, 0.25, 2)
    first, second = (run(block_map, 8, 128, torch.bfloat16)[3] for _ in range(2))
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def test_offsets_beyond_32_bits():
    # 134 heads x 131,072 rows x 128: the last head starts beyond 2^31 numbers
    one = draw_block_map("uniform_block", 131072, 64, 0.001, 1)
    heads = 134
    many = replace(
        one,
        kv_heads=heads,
        kept=one.kept.repeat(heads, 0),
        row_sizes=one.row_sizes.repeat(heads, 0),
        column_sizes=one.column_sizes.repeat(heads, 0),
    )
    q = draw(heads, 131072, 128, torch.bfloat16, 5)
    last = q[-1:].clone()
    plans = [video_sparse.plan(block_map, block_map.kv_heads, 128, q.device) for block_map in (many, one)]
    out, lse = video_sparse.forward(q, q, q, plans[0])
    alone = video_sparse.forward(last, last, last, plans[1])
    assert torch.equal(out[-1:], alone[0]) and torch.equal(lse[-1:], alone[1])
    gradients = video_sparse.backward(q, q, q, out, lse, q, plans[0])
    for a, b in zip(gradients, video_sparse.backward(last, last, last, *alone, last, plans[1]), strict=True):
        assert torch.equal(a[-1:], b)
