"""Kernels that round where real ones do pass the gate on every pattern, rows of few cells included."""

import random

import pytest
import torch

from longca.cases import Case
from longca.kernels.interface import Prepared, Tensors
from longca.kernels.oracle import kept_rows
from longca.masks.mask import Mask, draw_mask
from longca.masks.patterns import PATTERNS
from longca.measure.tensors import draw_tensors
from longca.measure.verify import Verifier

SIZES = {"window": 50, "global_tokens": 20, "block": 64}


def half_precision_kernel(case: Case, mask: Mask, tensors: Tensors, fused: bool) -> Prepared:
    """Sums in float32, operands of every product in the case's dtype.

    Fused: what is rounded and multiplied with v is exp(score - greatest), divided afterwards. Otherwise probabilities.
    """
    dtype, group, scale = tensors.q.dtype, case.q_heads // case.kv_heads, case.head_dim**-0.5
    kept = kept_rows(mask, 0, torch.device("cpu"))(0, case.seqlen)
    q, dout = tensors.q.float(), tensors.dout.float()
    k, v = (tensor.float().repeat_interleave(group, 0) for tensor in (tensors.k, tensors.v))
    scores = (q @ k.mT * scale).masked_fill(~kept, float("-inf"))
    unscaled = torch.exp(scores - scores.amax(-1, keepdim=True))
    total = unscaled.sum(-1, keepdim=True)
    p = unscaled / total
    out = unscaled.to(dtype).float() @ v / total if fused else p.to(dtype).float() @ v
    out = out.to(dtype)
    delta = (out.float() * dout).sum(-1, keepdim=True)
    ds = (p * (dout @ v.mT - delta)).to(dtype).float() * scale

    def summed(by_query_head: torch.Tensor) -> torch.Tensor:
        return by_query_head.unflatten(0, (case.kv_heads, group)).sum(1).to(dtype)

    gradients = ((ds @ k).to(dtype), summed(ds.mT @ q), summed(p.to(dtype).float().mT @ dout))
    return Prepared(lambda: out, lambda: gradients, lambda: None, "hsd", "test")


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_it_passes(pattern, dtype, fused):
    lengths = random.Random(pattern)
    documents = (
        [lengths.choice([1, 2, 3, 5, 60]) for _ in range(50)] if PATTERNS[pattern].takes_documents else None
    )
    seqlen = sum(documents) if documents else 700
    parameters = {name: SIZES[name] for name in PATTERNS[pattern].parameters if name in SIZES}
    mask = draw_mask(pattern, seqlen, parameters=parameters, documents=documents)
    case = Case("dense", "test", "auto", pattern, seqlen, 0, 4, 2, 128, dtype, "backward")
    tensors = draw_tensors(case, torch.device("cpu"), gradients=True)
    verdict = Verifier(case, mask, tensors).check(
        half_precision_kernel(case, mask, tensors, fused), gradients=True
    )
    assert verdict.wrong is None
    assert all(error < (4e-3 if dtype == "bfloat16" else 5e-4) for error in verdict.relative_error.values())
