"""Small masks with every fault a tile can meet, and the dense float64 attention that judges them."""

import torch

MASKS = {
    "full": ([(0, 137, 0, 137, "full")], 137, 137),
    "causal": ([(0, 137, 0, 137, "causal")], 137, 137),
    "documents": (
        [(0, 30, 0, 30, "causal"), (30, 31, 30, 31, "causal"), (31, 300, 31, 300, "causal")],
        300,
        300,
    ),
    "window": ([(0, 9, 0, 9, "causal"), (9, 300, 0, 300, "bi_causal")], 300, 300),
    "question": (
        [(0, 40, 0, 40, "causal"), (40, 200, 40, 200, "causal"), (40, 200, 0, 40, "full")],
        200,
        200,
    ),
    "empty rows": ([(5, 60, 0, 40, "causal"), (70, 90, 9, 50, "inv_causal")], 100, 60),
    "more keys": ([(0, 50, 0, 150, "causal")], 50, 150),
    "more queries": ([(0, 150, 0, 50, "causal")], 150, 50),
    "one token": ([(0, 1, 0, 1, "causal")], 1, 1),
    "nothing": ([], 3, 5),
}


def kept(slices, queries, keys):
    i, j = torch.arange(queries)[:, None], torch.arange(keys)
    mask = torch.zeros(queries, keys, dtype=torch.bool)
    for q0, q1, k0, k1, kind in slices:
        part = (i >= q0) & (i < q1) & (j >= k0) & (j < k1)
        if kind in ("causal", "bi_causal"):
            part &= j - k1 <= i - q1
        if kind in ("inv_causal", "bi_causal"):
            part &= j - k0 >= i - q0
        mask |= part
    return mask


def dense(q, k, v, dout, mask):
    """Float64 attention with the S x S mask: out, lse, dq, dk, dv."""
    q, k, v = (x.detach().double().requires_grad_() for x in (q, k, v))
    group = q.shape[0] // k.shape[0]
    scores = q @ k.repeat_interleave(group, 0).mT * q.shape[-1] ** -0.5
    scores = scores.masked_fill(~mask, -torch.inf)
    lse = scores.logsumexp(-1)
    weights = torch.exp(scores - torch.where(lse.isinf(), 0.0, lse)[..., None])
    out = weights @ v.repeat_interleave(group, 0)
    return out.detach(), lse.detach(), *torch.autograd.grad(out, (q, k, v), dout.double())
