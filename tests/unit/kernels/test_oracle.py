"""The oracle against attention written with one dense softmax and torch's own gradients."""

import numpy as np
import pytest
import torch

from longca.kernels import oracle
from longca.kernels.oracle import attend, kept_rows
from longca.masks.blocks import draw_block_map
from longca.masks.mask import draw_mask
from longca.masks.patterns import PATTERNS

RESULTS = ("out", "dq", "dk", "dv")
PARAMETERS = {"window": 9, "global_tokens": 5, "block": 16}


def by_autograd(q, k, v, dout, kept):
    q, k, v = (tensor.double().requires_grad_() for tensor in (q, k, v))
    scores = (q @ k.T * q.shape[-1] ** -0.5).masked_fill(~kept, float("-inf"))
    lse = torch.logsumexp(scores, -1)
    p = torch.exp(scores - torch.where(lse.isinf(), 0.0, lse)[..., None])
    out = p @ v
    return out, lse, *torch.autograd.grad(out, (q, k, v), dout.double())


def draw(heads, queries, keys, head_dim=16):
    generator = torch.Generator().manual_seed(3)
    shapes = [(heads, queries, head_dim), (keys, head_dim), (keys, head_dim), (heads, queries, head_dim)]
    return [torch.randn(shape, generator=generator) for shape in shapes]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_every_pattern(pattern, monkeypatch):
    monkeypatch.setitem(oracle._CHUNK_ELEMENTS, "cpu", 3 * 137 * 10)  # several chunks, the last one cut
    wanted = {name: PARAMETERS[name] for name in PATTERNS[pattern].parameters if name in PARAMETERS}
    documents = [60, 1, 7, 69] if PATTERNS[pattern].takes_documents else None
    mask = draw_mask(pattern, 137, parameters=wanted, documents=documents)
    tokens = np.arange(137)
    from longca.masks.patterns import Tokens

    kept = PATTERNS[pattern].keeps(
        tokens[:, None], tokens[None, :], Tokens(mask.documents or [137]), mask.parameters
    )
    kept = torch.from_numpy(np.broadcast_to(kept, (137, 137)).copy())
    data = draw(3, 137, 137)
    found = attend(*data, kept_rows(mask, 0, torch.device("cpu")))
    for name, right in zip(("out", "lse", "dq", "dk", "dv"), by_autograd(*data, kept), strict=True):
        torch.testing.assert_close(getattr(found, name), right, atol=1e-12, rtol=1e-10)


@pytest.mark.parametrize("pattern", ["uniform_block", "variable_block"])
def test_block_maps_of_each_head(pattern):
    blocks = draw_block_map(
        pattern,
        400 if pattern == "uniform_block" else 600,
        64 if pattern == "uniform_block" else 150,
        0.4,
        2,
        42,
        0,
    )
    for head in range(2):
        kept = np.zeros((blocks.seqlen, blocks.seqlen), bool)
        rows, columns = np.cumsum([0, *blocks.row_sizes[head]]), np.cumsum([0, *blocks.column_sizes[head]])
        for row, column in zip(*np.nonzero(blocks.kept[head]), strict=True):
            kept[rows[row] : rows[row + 1], columns[column] : columns[column + 1]] = True
        assert torch.equal(
            kept_rows(blocks, head, torch.device("cpu"))(0, blocks.seqlen), torch.from_numpy(kept)
        )


def test_rows_that_see_nothing_and_keys_nobody_sees():
    kept = torch.zeros(5, 4, dtype=torch.bool)
    kept[1, :2] = kept[4, 1] = True
    q, k, v, dout = draw(2, 5, 4)
    found = attend(q, k, v, dout, lambda start, stop: kept[start:stop])
    empty = [0, 2, 3]
    assert (found.out[:, empty] == 0).all() and (found.dq[:, empty] == 0).all()
    assert (found.lse[:, empty] == float("-inf")).all() and found.lse[:, [1, 4]].isfinite().all()
    assert (found.dk[2:] == 0).all() and (found.dv[2:] == 0).all()
    assert all(getattr(found, name).isfinite().all() for name in ("out", "dq", "dk", "dv"))


@pytest.mark.parametrize("logit", [-120.0, 5e4, -5e4])
def test_large_logits(logit):
    q, k, v, dout = draw(1, 6, 6)
    q = q + logit / 4  # scores of about logit / 4 * sum(k) / 4 are spread over thousands
    kept = torch.ones(6, 6, dtype=torch.bool).tril()
    found = attend(q, k, v, dout, lambda start, stop: kept[start:stop])
    for name, right in zip(("out", "lse", "dq", "dk", "dv"), by_autograd(q, k, v, dout, kept), strict=True):
        torch.testing.assert_close(getattr(found, name), right, atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [(torch.bfloat16, 1e-3, 6e-3), (torch.float16, 1e-4, 8e-4), (torch.float32, 0, 2e-7)],
)
def test_rounding_costs_what_the_dtype_costs(dtype, low, high):
    q, k, v, dout = (tensor.to(dtype) for tensor in draw(2, 200, 200, 64))
    kept = torch.ones(200, 200, dtype=torch.bool).tril()
    found = attend(q, k, v, dout, lambda a, b: kept[a:b], dtype)
    for name in RESULTS:
        right = getattr(found, name)
        assert low < (getattr(found.rounded, name) - right).norm() / right.norm() < high, name


def in_one_piece(q, k, v, dout, kept, to):
    """Results with what a fused kernel rounds rounded, and magnitudes of the exact ones, from their definitions."""
    q, k, v, dout = (tensor.double() for tensor in (q, k, v, dout))
    scale = q.shape[-1] ** -0.5
    scores = (q @ k.T * scale).masked_fill(~kept, float("-inf"))
    most = scores.amax(-1, keepdim=True)
    unscaled = torch.exp(scores - torch.where(most.isinf(), 0.0, most))
    total = unscaled.sum(-1, keepdim=True)
    p = torch.where(total > 0, unscaled / total, 0.0)

    def rounded(tensor):
        return tensor.to(to).double()

    out = rounded(torch.where(total > 0, rounded(unscaled) @ v / total, 0.0))
    dp = dout @ v.T
    ds = rounded(p * (dp - (out * dout).sum(-1, keepdim=True))) * scale
    sums = rounded((ds.mT @ q).sum(0)), rounded((rounded(p).mT @ dout).sum(0))
    results = dict(zip(RESULTS, (out, rounded(ds @ k), *sums), strict=True))
    q_size, k_size, v_size, dout_size = (tensor.square().sum(-1).mean().sqrt() for tensor in (q, k, v, dout))
    delta = (p @ v * dout).sum(-1, keepdim=True)
    terms = p * (dp.abs() + delta.abs() + v_size * dout.norm(dim=-1, keepdim=True) * scale) * scale
    magnitude = {
        "out": p.square().sum(-1).sqrt() * v_size,
        "dq": terms.square().sum(-1).sqrt() * k_size,
        "dk": terms.square().sum((0, 1)).sqrt() * q_size,
        "dv": p.square().sum((0, 1)).sqrt() * dout_size,
    }
    return results, magnitude


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
@pytest.mark.parametrize("pattern", ["causal", "full_document", "causal_sliding_window", "shared_question"])
def test_exact_and_rounded_of_one_walk_are_those_of_separate_ones(pattern, dtype, monkeypatch):
    monkeypatch.setitem(oracle._CHUNK_ELEMENTS, "cpu", 3 * 137 * 10)
    wanted = {name: PARAMETERS[name] for name in PATTERNS[pattern].parameters if name in PARAMETERS}
    documents = [60, 1, 7, 69] if PATTERNS[pattern].takes_documents else None
    mask = draw_mask(pattern, 137, parameters=wanted, documents=documents)
    q, k, v, dout = (tensor.to(dtype) for tensor in draw(3, 137, 137))
    rows = kept_rows(mask, 0, torch.device("cpu"))
    found, alone = attend(q, k, v, dout, rows, dtype), attend(q, k, v, dout, rows)
    assert alone.rounded is None
    for name in (*RESULTS, "lse"):
        assert torch.equal(getattr(found, name), getattr(alone, name))
    results, magnitude = in_one_piece(q, k, v, dout, rows(0, 137), dtype)
    for name in RESULTS:
        right, exact = results[name], getattr(found, name)
        torch.testing.assert_close(getattr(found.rounded, name), right, atol=1e-12, rtol=1e-12)
        torch.testing.assert_close(found.magnitude[name], magnitude[name], atol=1e-12, rtol=1e-12)
        cost = (getattr(found.rounded, name) - exact).norm(dim=-1)
        torch.testing.assert_close(cost, (right - exact).norm(dim=-1), atol=1e-12, rtol=1e-12)


def test_rows_that_see_few_keys_go_many_at_a_time(monkeypatch):
    monkeypatch.setitem(oracle._CHUNK_ELEMENTS, "cpu", 2 * 64 * 8)
    q, k, *_ = draw(2, 64, 64)
    kept = torch.zeros(64, 64, dtype=torch.bool)
    kept[:16] = True  # nothing is left out of these
    kept[16:32, 30:38] = True
    kept[50, 63] = True
    pieces = list(oracle._pieces(q, k, lambda start, stop: kept[start:stop]))
    shapes = [(rows.start, rows.stop, columns.start, columns.stop) for rows, columns, _ in pieces]
    assert shapes == [(0, 8, 0, 64), (8, 16, 0, 64), (16, 32, 30, 38), (48, 64, 63, 64)]
    for rows, columns, piece in pieces:
        assert 2 * piece.numel() <= 2 * 64 * 8 and torch.equal(piece, kept[rows, columns])
    assert sum(int(piece.sum()) for _, _, piece in pieces) == int(kept.sum())
