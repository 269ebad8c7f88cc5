"""The segments kernels on a GPU against float64: every pattern, odd lengths and groups, both backends.

python -m pytest tests/gpu -m gpu
"""

import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent.parent / "unit"))
from segments_cases import MASKS, dense, kept

from longca.masks.blocks import draw_block_map
from longca.masks.patterns import PATTERNS
from longca.ops import segments
from longca.ops.segments import device_plan

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU"),
]

BACKENDS = (
    ["gluon", "triton"]
    if torch.cuda.is_available() and torch.cuda.get_device_capability() == (9, 0)
    else ["triton"]
)
SMALL = {"window": 125, "global_tokens": 66, "block": 100, "prefix": 200}
SHAPES = [
    (8, 2, 128, torch.bfloat16),
    (28, 7, 128, torch.float16),
    (3, 3, 64, torch.bfloat16),
    (8, 1, 64, torch.float16),
]


def patterns(seqlen):
    documents = [seqlen // 4, 7, 1, seqlen // 2]
    documents.append(seqlen - sum(documents))
    for name, pattern in PATTERNS.items():
        slices = pattern.build(seqlen, tuple(documents) if pattern.has_documents else (), SMALL)
        yield f"{name} {seqlen}", ([tuple(piece) for piece in slices], seqlen, seqlen)


# Every step is whole: kernels that know no bounds. Runs of one and of several steps, and rows without any.
WHOLE = {
    "whole": ([(0, 1024, 0, 1024, "full")], 1024, 1024),
    "whole steps": (
        [
            (0, 128, 256, 384, "full"),
            (128, 256, 0, 384, "full"),
            (128, 256, 640, 768, "full"),
            (384, 640, 0, 128, "full"),
        ],
        640,
        768,
    ),
}
CASES = {**MASKS, **WHOLE, **dict(patterns(1000)), **dict(patterns(1025)), **dict(patterns(137))}


def draw(heads, rows, dim, dtype, seed):
    generator = torch.Generator("cuda").manual_seed(seed)
    return torch.randn(heads, rows, dim, device="cuda", generator=generator).to(dtype)


def run(slices, queries, keys, q_heads, kv_heads, dim, dtype, **options):
    q, dout = draw(q_heads, queries, dim, dtype, 1), draw(q_heads, queries, dim, dtype, 2)
    k, v = draw(kv_heads, keys, dim, dtype, 3), draw(kv_heads, keys, dim, dtype, 4)
    plan = segments.plan(slices, queries, keys, q_heads, kv_heads, dim, dtype, "cuda", **options)
    out, lse = segments.forward(q, k, v, plan)
    return (q, k, v, dout), out, lse, segments.backward(q, k, v, out, lse, dout, plan)


def assert_agrees(name, shape, **options):
    slices, queries, keys = CASES[name]
    inputs, out, lse, gradients = run(slices, queries, keys, *shape, **options)
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


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", CASES)
def test_agrees_with_float64(name, shape, deterministic, backend):
    assert_agrees(name, shape, backend=backend, deterministic=deterministic)


@pytest.mark.skipif("gluon" not in BACKENDS, reason="needs a Hopper GPU")
@pytest.mark.parametrize("order", ["heads_inside", "heads_apart"])
@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", CASES)
def test_agrees_with_float64_in_the_orders_of_long_sequences(name, shape, deterministic, order, monkeypatch):
    # so few tokens do not take them by themselves
    monkeypatch.setattr(device_plan, "_backward_order", lambda columns, shape: order)
    assert_agrees(name, shape, backend="gluon", deterministic=deterministic)


@pytest.fixture
def tall(monkeypatch):
    # so few tokens do not take tall tiles by themselves
    monkeypatch.setattr(device_plan, "TALL_RUN_STEPS", 0)
    monkeypatch.setattr(device_plan, "NARROW_CELLS", 0.0)
    monkeypatch.setattr(device_plan, "_tall_ends_earlier", lambda *_: True)


@pytest.mark.skipif("gluon" not in BACKENDS, reason="needs a Hopper GPU")
@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape[2] == 128])
@pytest.mark.parametrize("name", CASES)
def test_tall_tiles_agree_with_float64(name, shape, tall):
    assert segments.plan(*CASES[name], *shape, "cuda").prepared.forward_tile.rows == 192
    assert_agrees(name, shape)


@pytest.mark.skipif("gluon" not in BACKENDS, reason="needs a Hopper GPU")
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("growth", [4.0, 20.0, 200.0])
@pytest.mark.parametrize(("kind", "tokens"), [("causal", 1000), ("full", 1024)])
def test_scores_that_grow_along_a_row_of_a_tall_tile(kind, tokens, growth, dtype, tall):
    assert_growing_scores_agree(kind, tokens, growth, 128, dtype, "gluon")


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("dim", [64, 128])
@pytest.mark.parametrize("growth", [4.0, 20.0, 200.0])
def test_scores_that_grow_along_a_row(growth, dim, dtype, backend):
    assert_growing_scores_agree("causal", 1000, growth, dim, dtype, backend)


def assert_growing_scores_agree(kind, tokens, growth, dim, dtype, backend):
    # sums are rescaled seldom, often, or in nearly every step: by all rows of a warp, and by one alone
    q, k, v = draw(4, tokens, dim, dtype, 1), draw(2, tokens, dim, dtype, 3), draw(2, tokens, dim, dtype, 4)
    grows = torch.ones(tokens, device="cuda")
    grows[1::2], grows[5::16] = 0.3, -1.0
    q[..., 0] = (grows * dim**0.5).to(dtype)
    k[..., 0] = torch.linspace(0, growth, tokens, device="cuda").to(dtype)
    slices = [(0, tokens, 0, tokens, kind)]
    plan = segments.plan(slices, tokens, tokens, 4, 2, dim, dtype, "cuda", backend)
    out, lse = segments.forward(q, k, v, plan)
    want = dense(q, k, v, torch.zeros_like(q), kept(slices, tokens, tokens).cuda())
    assert (out.double() - want[0]).norm() <= 6e-3 * want[0].norm()
    assert ((out.double() - want[0]).norm(dim=-1) <= 2e-2 * want[0].norm(dim=-1)).all()
    assert (lse - want[1]).abs().max() < 1e-3


@pytest.mark.parametrize("name", CASES)
def test_only_masks_of_whole_steps_are_taken_for_whole(name):
    slices, queries, keys = CASES[name]
    prepared = segments.plan(slices, queries, keys, 8, 2, 128, torch.bfloat16, "cuda").prepared
    assert prepared.forward.whole == prepared.backward.whole == (name in WHOLE or name == "nothing")


@pytest.mark.parametrize("backend", BACKENDS)
def test_each_kv_head_may_have_its_own_mask(backend):
    masks = [CASES[f"{name} 1000"][0] for name in ("causal_document", "shared_question", "full")]
    inputs, out, _, gradients = run(masks, 1000, 1000, 6, 3, 128, torch.bfloat16, backend=backend)
    mask = torch.stack([kept(slices, 1000, 1000) for slices in masks]).repeat_interleave(2, 0).cuda()
    want = dense(*inputs, mask)
    for a, b in zip((out, *gradients), (want[0], *want[2:]), strict=True):
        assert (a.double() - b).norm() <= 6e-3 * b.norm()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("pattern", "block"), [("uniform_block", 64), ("uniform_block", 128), ("variable_block", 256)]
)
def test_block_maps(pattern, block, backend):
    block_map = draw_block_map(pattern, 1100, block, 0.25, 2)
    masks = [[tuple(piece) for piece in block_map.slices(head)] for head in range(2)]
    inputs, out, _, gradients = run(masks, 1100, 1100, 6, 2, 128, torch.bfloat16, backend=backend)
    mask = torch.stack([kept(slices, 1100, 1100) for slices in masks]).repeat_interleave(3, 0).cuda()
    want = dense(*inputs, mask)
    for a, b in zip((out, *gradients), (want[0], *want[2:]), strict=True):
        assert (a.double() - b).norm() <= 6e-3 * b.norm()


@pytest.mark.parametrize("backend", BACKENDS)
def test_deterministic_gradients_repeat_bit_for_bit(backend):
    slices = [(0, 4000, 0, 4000, "causal")]
    first, second = (
        run(slices, 4000, 4000, 16, 2, 128, torch.bfloat16, backend=backend, deterministic=True)[3]
        for _ in range(2)
    )
    assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))


def test_offsets_beyond_32_bits():
    # 18 heads x 1,000,000 rows x 128: the last head starts beyond 2^31 numbers
    rows, heads = 1_000_000, 18
    q = draw(heads, rows, 128, torch.bfloat16, 5)
    slices = [(0, 64, 0, 64, "causal"), (64, rows, 1, rows, "bi_causal")]
    many = segments.plan(slices, rows, rows, heads, heads, 128, torch.bfloat16, "cuda")
    one = segments.plan(slices, rows, rows, 1, 1, 128, torch.bfloat16, "cuda")
    out, lse = segments.forward(q, q, q, many)
    last = q[-1:].clone()
    alone = segments.forward(last, last, last, one)
    assert torch.equal(out[-1:], alone[0]) and torch.equal(lse[-1:], alone[1])
    gradients = segments.backward(q, q, q, out, lse, q, many)
    for a, b in zip(gradients, segments.backward(last, last, last, *alone, last, one), strict=True):
        assert (a[-1:].float() - b.float()).norm() <= 1e-3 * b.float().norm()


@pytest.mark.parametrize("mode", ["default", "reduce-overhead"])
def test_one_compiled_call_serves_a_mask_a_batch(mode):
    torch._dynamo.reset()
    compiled = torch.compile(lambda q, k, v, plan: segments.attention(2 * q, k, v, plan)[0] * 2, mode=mode)
    sizes = ((8, 1), (2, 2), (2, 3))
    q, k, v = (draw(heads, 512, 128, torch.bfloat16, seed).requires_grad_() for heads, seed in sizes)
    for keys in (100, 200, 300, 400, 500):
        plan = segments.plan([(0, 512, 0, keys, "full")], 512, 512, 8, 2, 128, torch.bfloat16, "cuda")
        found = [compiled(q, k, v, plan)]
        found += torch.autograd.grad(found[0].sum(), (q, k, v))
        want = [2 * segments.attention(2 * q, k, v, plan)[0]]
        want += torch.autograd.grad(want[0].sum(), (q, k, v))
        for a, b in zip(found, want, strict=True):
            assert (a.float() - b.float()).norm() <= 1e-3 * b.float().norm()
