"""Runs our Video Sparse Attention in Triton's interpreter and prints, as JSON, how far each case is from float64.

A program of its own: Triton reads TRITON_INTERPRET when it is imported, and other tests compile.
"""

import json
import sys
from dataclasses import replace

import torch
from segments_cases import dense, kept

from longca.cases import Case
from longca.kernels.registry import load_kernel
from longca.masks.blocks import draw_block_map
from longca.measure.tensors import draw_tensors
from longca.measure.verify import Verifier
from longca.ops import video_sparse


def errors(block_map, q_heads):
    """Relative errors of out, dq, dk, dv; the absolute one of lse; whether rows and keys without cells are exact."""
    generator = torch.Generator().manual_seed(11)
    seqlen, kv_heads = block_map.seqlen, block_map.kv_heads
    q, dout = (torch.randn(q_heads, seqlen, 16, generator=generator) for _ in range(2))
    k, v = (torch.randn(kv_heads, seqlen, 16, generator=generator) for _ in range(2))
    plan = video_sparse.plan(block_map, q_heads, 16, torch.device("cpu"))
    out, lse = video_sparse.forward(q, k, v, plan)
    got = out, *video_sparse.backward(q, k, v, out, lse, dout, plan)
    by_head = torch.stack([kept(block_map.slices(head), seqlen, seqlen) for head in range(kv_heads)])
    mask = by_head.repeat_interleave(q_heads // kv_heads, 0)
    want = dense(q, k, v, dout, mask)
    empty, unseen = want[1].isinf(), ~by_head.any(1)
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


def draw(seqlen, density, kv_heads):
    return draw_block_map("uniform_block", seqlen, 16, density, kv_heads)


def with_holes():
    """A map with a row of blocks and a column of blocks that keep nothing."""
    block_map = draw(80, 0.5, 2)
    holes = block_map.kept.copy()
    holes[0, 1, :], holes[1, :, 2] = False, False
    return replace(block_map, kept=holes)


CASES = {
    "whole blocks, one head each": lambda: (draw(96, 0.4, 2), 2),
    "the last block in part": lambda: (draw(73, 0.6, 2), 4),
    "every block, the last in part": lambda: (draw(37, 1.0, 1), 1),
    "less than a block": lambda: (draw(7, 1.0, 1), 3),
    "one token": lambda: (draw(1, 1.0, 1), 2),
    "odd group": lambda: (draw(64, 0.3, 2), 6),
    "even group": lambda: (draw(64, 0.3, 1), 4),
    "empty rows and columns": lambda: (with_holes(), 4),
}


def adapter():
    """What the verifier says against the adapter's `prepare`, through autograd."""
    block_map = draw_block_map("uniform_block", 200, 64, 0.5, 2)
    case = Case(
        "sparse", "vsa_triton", "auto", "uniform_block", 200, 0, 4, 2, 16, "float32", "forward", 64, 0.5
    )
    tensors = draw_tensors(case, torch.device("cpu"), True)
    prepared = load_kernel("sparse", "vsa_triton").prepare(case, block_map, tensors)
    return {
        "wrong": Verifier(case, block_map, tensors).check(prepared, True).wrong,
        "backend": prepared.backend,
    }


if __name__ == "__main__":
    results = {name: errors(*case()) for name, case in CASES.items()}
    json.dump({**results, "adapter": adapter()}, sys.stdout)
