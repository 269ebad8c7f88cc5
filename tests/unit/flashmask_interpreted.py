"""Runs FlashMask's kernels in Triton's interpreter and prints, as JSON, how far each case is from float64.

A program of its own: Triton reads TRITON_INTERPRET when it is imported, and other tests compile.
"""

import json
import sys

import torch
from segments_cases import MASKS, dense, kept

from longca.cases import Case
from longca.kernels.registry import load_kernel
from longca.masks.mask import draw_mask
from longca.masks.patterns import PATTERNS
from longca.masks.views import flashmask as view
from longca.measure.tensors import draw_tensors
from longca.measure.verify import Verifier
from longca.ops import flashmask

SMALL = {"window": 20, "global_tokens": 10, "block": 16, "prefix": 30}
DOCUMENTS = (27, 1, 7, 16, 17)
SEQLEN = sum(DOCUMENTS)


def errors(slices, queries, keys, q_heads, kv_heads, magnitude=1.0):
    """Relative errors of out, dq, dk, dv; the absolute one of lse; whether rows and keys without cells are exact."""
    generator = torch.Generator().manual_seed(11)
    q, dout = (torch.randn(q_heads, queries, 16, generator=generator) for _ in range(2))
    k, v = (torch.randn(kv_heads, keys, 16, generator=generator) for _ in range(2))
    q *= magnitude
    lowered = view.lower(slices, queries, keys)
    plan = flashmask.plan(lowered, q_heads, kv_heads, 16, torch.device("cpu"))
    out, lse = flashmask.forward(q, k, v, plan)
    got = out, *flashmask.backward(q, k, v, out, lse, dout, plan)
    mask = kept(slices, queries, keys)
    want = dense(q, k, v, dout, mask)
    empty = want[1].isinf()
    unseen = ~mask.any(0)
    result = {
        name: float((a.double() - b).norm() / max(b.norm(), 1))
        for name, a, b in zip(("out", "dq", "dk", "dv"), got, (want[0], *want[2:]), strict=True)
    }
    result["lse"] = float(torch.where(empty, 0.0, lse - want[1]).abs().max()) / magnitude
    exact = bool(
        torch.equal(lse == -torch.inf, empty)
        and (got[0][empty] == 0).all()
        and (got[1][empty] == 0).all()
        and (got[2][:, unseen] == 0).all()
        and (got[3][:, unseen] == 0).all()
    )
    steps = {"rows": plan.forward.spans.tolist(), "columns": plan.backward_keys.spans.tolist()}
    return {
        "errors": result,
        "empty_exact": exact,
        "form": plan.columns.form,
        "splits": plan.splits,
        "steps": steps,
    }


def cases():
    for name, pattern in PATTERNS.items():
        documents = DOCUMENTS if pattern.has_documents else ()
        slices = [tuple(piece) for piece in pattern.build(SEQLEN, documents, SMALL)]
        yield name, (slices, SEQLEN, SEQLEN, 1, 1)
    for name in ("one token", "nothing"):
        yield name, (*MASKS[name], 1, 1)
    yield "more keys", ([(0, 20, 0, 70, "causal")], 20, 70, 1, 1)
    yield "more queries", ([(0, 70, 0, 20, "causal")], 70, 20, 1, 1)
    yield "empty rows", ([(0, 40, 0, 50, "full")], 70, 50, 2, 1)
    yield "odd groups", ([(0, 45, 0, 45, "causal")], 45, 45, 6, 2)
    yield "all of a group apart", ([(0, 9, 0, 9, "causal"), (9, 45, 0, 9, "full")], 45, 45, 7, 1)
    yield "large logits", ([(0, 37, 0, 37, "causal")], 37, 37, 2, 2, 300.0)


def adapter(pattern):
    """What the verifier says against the adapter's `prepare`, through autograd."""
    mask = draw_mask(pattern, 45, documents=[20, 1, 24] if PATTERNS[pattern].takes_documents else None)
    case = Case("dense", "flashmask", "auto", pattern, 45, 0, 3, 1, 16, "float32", "forward")
    tensors = draw_tensors(case, torch.device("cpu"), True)
    prepared = load_kernel("dense", "flashmask").prepare(case, mask, tensors)
    return {"wrong": Verifier(case, mask, tensors).check(prepared, True).wrong, "backend": prepared.backend}


if __name__ == "__main__":
    results = {name: errors(*case) for name, case in cases()}
    results["adapter"] = {pattern: adapter(pattern) for pattern in ("full", "causal_document")}
    json.dump(results, sys.stdout)
