"""FlashMask's kernels on a GPU against float64: every pattern, odd lengths and groups.

python -m pytest tests/gpu -m gpu
"""

import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent.parent / "unit"))
from segments_cases import MASKS, dense, kept

from longca.masks.patterns import PATTERNS
from longca.masks.views import flashmask as view
from longca.ops import flashmask

pytestmark = pytest.mark.gpu

SMALL = {"window": 125, "global_tokens": 66, "block": 100, "prefix": 200}
SHAPES = [
    (8, 2, 128, torch.bfloat16),
    (28, 7, 128, torch.float16),
    (3, 3, 64, torch.bfloat16),
    (7, 1, 64, torch.float16),
]


def patterns(seqlen):
    documents = [seqlen // 4, 7, 1, seqlen // 2]
    documents.append(seqlen - sum(documents))
    for name, pattern in PATTERNS.items():
        slices = pattern.build(seqlen, tuple(documents) if pattern.has_documents else (), SMALL)
        yield f"{name} {seqlen}", ([tuple(piece) for piece in slices], seqlen, seqlen)


CASES = {
    **{name: MASKS[name] for name in ("more keys", "more queries", "one token", "nothing")},
    "empty rows": ([(0, 40, 0, 60, "full")], 190, 60),
    **dict(patterns(137)),
    **dict(patterns(1000)),
    **dict(patterns(1025)),
}


def draw(heads, rows, dim, dtype, seed):
    generator = torch.Generator("cuda").manual_seed(seed)
    return torch.randn(heads, rows, dim, device="cuda", generator=generator).to(dtype)


def run(slices, queries, keys, q_heads, kv_heads, dim, dtype):
    q, dout = draw(q_heads, queries, dim, dtype, 1), draw(q_heads, queries, dim, dtype, 2)
    k, v = draw(kv_heads, keys, dim, dtype, 3), draw(kv_heads, keys, dim, dtype, 4)
    plan = flashmask.plan(view.lower(slices, queries, keys), q_heads, kv_heads, dim, q.device)
    out, lse = flashmask.forward(q, k, v, plan)
    return (q, k, v, dout), out, lse, flashmask.backward(q, k, v, out, lse, dout, plan)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", CASES)
def test_agrees_with_float64(name, shape):
    slices, queries, keys = CASES[name]
    inputs, out, lse, gradients = run(slices, queries, keys, *shape)
    mask = kept(slices, queries, keys).cuda()
    want = dense(*inputs, mask)
    empty = want[1].isinf()
    # 16-bit products alone cost 2 to 4e-3
    for a, b in zip((out, *gradients), (want[0], *want[2:]), strict=True):
        assert (a.double() - b).norm() <= 6e-3 * max(b.norm(), 1)
    assert torch.equal(lse == -torch.inf, empty)
    assert torch.where(empty, 0.0, lse - want[1]).abs().max() < 1e-3
    assert (out[empty] == 0).all() and (gradients[0][empty] == 0).all()
    unseen = ~mask.any(0)
    assert (gradients[1][:, unseen] == 0).all() and (gradients[2][:, unseen] == 0).all()


def test_more_blocks_than_a_chunk_holds_and_gradients_that_repeat_bit_for_bit():
    slices = PATTERNS["global_sliding"].build(9000, (), {"window": 700, "global_tokens": 300})
    inputs, out, _, gradients = run([tuple(s) for s in slices], 9000, 9000, 2, 1, 128, torch.bfloat16)
    want = dense(*inputs, kept(slices, 9000, 9000).cuda())
    for a, b in zip((out, *gradients), (want[0], *want[2:]), strict=True):
        assert (a.double() - b).norm() <= 6e-3 * b.norm()
    again = run([tuple(s) for s in slices], 9000, 9000, 2, 1, 128, torch.bfloat16)[3]
    assert all(torch.equal(a, b) for a, b in zip(gradients, again, strict=True))


def test_offsets_beyond_32_bits():
    # 18 heads x 1,000,000 rows x 128: the last head starts beyond 2^31 numbers
    rows, heads = 1_000_000, 18
    q = draw(heads, rows, 128, torch.bfloat16, 5)
    lowered = view.lower([(0, 64, 0, 64, "causal"), (64, rows, 1, rows, "bi_causal")], rows, rows)
    many = flashmask.plan(lowered, heads, heads, 128, q.device)
    one = flashmask.plan(lowered, 1, 1, 128, q.device)
    out, lse = flashmask.forward(q, q, q, many)
    last = q[-1:].clone()
    alone = flashmask.forward(last, last, last, one)
    assert torch.equal(out[-1:], alone[0]) and torch.equal(lse[-1:], alone[1])
    gradients = flashmask.backward(q, q, q, out, lse, q, many)
    for a, b in zip(gradients, flashmask.backward(last, last, last, *alone, last, one), strict=True):
        assert torch.equal(a[-1:], b)
