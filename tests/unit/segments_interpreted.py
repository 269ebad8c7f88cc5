"""Runs the portable kernels in Triton's interpreter and prints, as JSON, how far each case is from float64.

A program of its own: Triton reads TRITON_INTERPRET when it is imported, and other tests compile.
"""

import json
import sys

import torch
import triton
from segments_cases import MASKS, dense, kept

from longca.masks.patterns import PATTERNS
from longca.ops import segments
from longca.ops.segments.elementwise import finish_fragments_kernel
from longca.ops.segments.gluon_backward_outputs import fragments

SMALL = {"window": 20, "global_tokens": 10, "block": 16, "prefix": 30}
DOCUMENTS = (37, 1, 7, 60, 25)
SEQLEN = sum(DOCUMENTS)


def errors(masks, queries, keys, q_heads, kv_heads, deterministic=False):
    """Relative errors of out, dq, dk, dv; the absolute one of lse; whether rows and keys without cells are exact."""
    generator = torch.Generator().manual_seed(11)
    q, dout = (torch.randn(q_heads, queries, 16, generator=generator) for _ in range(2))
    k, v = (torch.randn(kv_heads, keys, 16, generator=generator) for _ in range(2))
    plan = segments.plan(
        masks,
        queries,
        keys,
        q_heads,
        kv_heads,
        16,
        torch.float32,
        "cpu",
        "triton",
        deterministic=deterministic,
    )
    out, lse = segments.forward(q, k, v, plan)
    got = out, *segments.backward(q, k, v, out, lse, dout, plan)
    lists = masks if masks and isinstance(masks[0], list) else [masks]
    mask = torch.stack([kept(slices, queries, keys) for slices in lists]).repeat_interleave(
        q_heads // len(lists), 0
    )
    want = dense(q, k, v, dout, mask)
    empty = want[1].isinf()
    unseen = ~mask.view(kv_heads, -1, keys).any(1)
    result = {
        name: float((a.double() - b).norm() / max(b.norm(), 1))
        for name, a, b in zip(("out", "dq", "dk", "dv"), got, (want[0], *want[2:]), strict=True)
    }
    result["lse"] = float(torch.where(empty, 0.0, lse - want[1]).abs().max())
    exact = bool(
        torch.equal(lse == -torch.inf, empty)
        and (got[0][empty] == 0).all()
        and (got[1][empty] == 0).all()
        and (got[2][unseen] == 0).all()
        and (got[3][unseen] == 0).all()
    )
    return {"errors": result, "empty_exact": exact}


def fragments_error(dim):
    """How far dQ is from itself after it was summed as the Hopper kernel sums it, and cast.

    Of each head a few boxes of 64 x 64 at rows that are multiples of 4, added where the kernel's tensor map has them.
    """
    heads, rows, padded = 2, 201, 204
    generator = torch.Generator().manual_seed(3)
    want, summed = torch.zeros(heads, padded, dim), torch.zeros(heads, padded * 2, dim // 2)
    for head in range(heads):
        for row in (0, 4, 64, 140):
            for half in range(dim // 64):
                part = torch.randn(64, 64, generator=generator)
                want[head, row : row + 64, half * 64 : half * 64 + 64] += part
                summed[head, row * 2 : row * 2 + 128, half * 32 : half * 32 + 32] += fragments.fn(part)
    got = torch.full((heads, rows, dim), torch.nan)
    finish_fragments_kernel[(triton.cdiv(padded, 64), heads)](summed, got, 0.5, rows, padded, ROWS=64, D=dim)
    return float((got - 0.5 * want[:, :rows]).abs().max())


def cases():
    for name, pattern in PATTERNS.items():
        documents = DOCUMENTS if pattern.has_documents else ()
        slices = [tuple(piece) for piece in pattern.build(SEQLEN, documents, SMALL)]
        yield name, (slices, SEQLEN, SEQLEN, 4, 2)
    for name in ("empty rows", "more keys", "more queries", "one token", "nothing"):
        yield name, (*MASKS[name], 7, 1)
    first, second = [(0, 70, 0, 70, "causal")], [(0, 16, 32, 64, "full"), (48, 70, 0, 16, "full")]
    yield "a mask for each KV head", ([first, second], 70, 70, 6, 2)
    yield "deterministic", (first, 70, 70, 3, 3, True)


if __name__ == "__main__":
    results = {name: errors(*case) for name, case in cases()}
    results |= {f"fragments {dim}": fragments_error(dim) for dim in (64, 128)}
    json.dump(results, sys.stdout)
