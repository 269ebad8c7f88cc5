"""Merges with the fused kernel in Triton's interpreter and prints, as JSON, how far it is from the torch form.

A program of its own: Triton reads TRITON_INTERPRET when it is imported.
"""

import json
import math

import torch

from longca.parallel.merge import merge, merge_into
from longca.parallel.merge_fused import merge_fused


def partial(generator, heads, rows, head_dim, dtype):
    """A random partial result, a third of whose rows keep nothing; so do all of the first 40."""
    out = torch.randn(heads, rows, head_dim, generator=generator)
    lse = torch.randn(heads, rows, generator=generator) * 50
    empty = torch.rand(heads, rows, generator=generator) < 1 / 3
    empty[:, :40] = True
    out[empty], lse[empty] = 0.0, -math.inf
    return out.to(dtype), lse


def difference(got, want):
    return float(torch.where(got == want, 0.0, got - want).abs().max())


answers = []
generator = torch.Generator().manual_seed(5)
for rows, head_dim, dtype in ((67, 16, torch.bfloat16), (129, 24, torch.float32), (1, 64, torch.float16)):
    out, lse = partial(generator, 2, rows, head_dim, torch.float32)
    part, part_lse = partial(generator, 2, rows, head_dim, dtype)
    want_out, want_lse = out.clone(), lse.clone()
    merge(want_out, want_lse, part, part_lse)
    elsewhere, other_lse = torch.empty_like(out, dtype=dtype), lse.clone()
    merge_fused(elsewhere, out.to(dtype), other_lse, part, part_lse)
    want_elsewhere, want_other = torch.empty_like(elsewhere), lse.clone()
    merge_into(want_elsewhere, out.to(dtype), want_other, part, part_lse)
    merge_fused(out, out, lse, part, part_lse)
    nothing = lse == -math.inf
    answers.append(
        {
            "out": difference(out, want_out),
            "lse": max(difference(lse, want_lse), difference(other_lse, want_other)),
            # In the dtype of the result: half a unit of its rounding, where both round another way.
            "elsewhere": difference(elsewhere.float(), want_elsewhere.float()) / torch.finfo(dtype).eps,
            "empty": int(nothing.sum()),
            "same_empty": bool((nothing == (want_lse == -math.inf)).all() and (out[nothing] == 0).all()),
        }
    )
print(json.dumps(answers))
