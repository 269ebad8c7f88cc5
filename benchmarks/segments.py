"""Times the segments kernels against other attention libraries, peers taking turns in one process.

python benchmarks/segments.py --seqlen 8192 --seqlen 32768 [--pattern causal] [--peer flex] [--out
figures.json]

Needs a GPU. A peer that cannot be imported, or cannot compute a mask, is left out of that row. Each
peer's gradients are compared with ours before anything is timed. CUDA events around each call, the
L2 cache flushed between calls and a short sleep on the device before each, so that launching never
counts; the median of `--repeats` calls is one pass, and the lowest and highest of `--passes` passes
are printed. TFLOP/s count the kept cells: 4 x cells x heads x head_dim forward, 2.5 times that
backward.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Annotated

import numpy as np
import torch
import typer

from longca.masks.mask import Mask, draw_mask
from longca.masks.patterns import PATTERNS
from longca.masks.slices import area
from longca.masks.views import flex_torch, varlen, window
from longca.masks.views.unavailable import ViewUnavailable
from longca.ops import segments

FLUSH_BYTES, SLEEP_CYCLES = 256 << 20, 2_000_000
Call = Callable[[], object]


@dataclass(frozen=True)
class Inputs:
    """q, dout [q_heads, seqlen, D], k, v [kv_heads, seqlen, D]."""

    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    dout: torch.Tensor

    def leaves(self, rearrange: Callable[[torch.Tensor], torch.Tensor]) -> tuple[torch.Tensor, ...]:
        """q, k, v as a peer wants them, ready for gradients."""
        return tuple(rearrange(x).contiguous().requires_grad_() for x in (self.q, self.k, self.v))


@dataclass(frozen=True)
class Peer:
    """What is timed, and the gradients in our layout for the comparison."""

    forward: Call
    backward: Call
    gradients: tuple[torch.Tensor, ...]


def ours(mask: Mask, x: Inputs, backend: str | None = None) -> Peer:
    (heads, seqlen, dim), kv_heads = x.q.shape, x.k.shape[0]
    plan = segments.plan(
        list(mask.slices), seqlen, seqlen, heads, kv_heads, dim, x.q.dtype, x.q.device, backend
    )
    out, lse = segments.forward(x.q, x.k, x.v, plan)

    def backward() -> tuple[torch.Tensor, ...]:
        return segments.backward(x.q, x.k, x.v, out, lse, x.dout, plan)

    return Peer(lambda: segments.forward(x.q, x.k, x.v, plan), backward, backward())


def through_autograd(
    call: Callable[[], torch.Tensor], leaves: tuple[torch.Tensor, ...], dout: torch.Tensor
) -> tuple:
    out = call()

    def forward() -> None:
        with torch.no_grad():
            call()

    def backward() -> tuple[torch.Tensor, ...]:
        return torch.autograd.grad(out, leaves, dout, retain_graph=True)

    return forward, backward


def flex(mask: Mask, x: Inputs) -> Peer:
    from torch._dynamo import config
    from torch.nn.attention.flex_attention import flex_attention

    config.recompile_limit = config.accumulated_recompile_limit = 512
    attend = torch.compile(flex_attention, dynamic=False)
    block_mask = flex_torch.block_mask(mask.slices, mask.seqlen, mask.seqlen, device=x.q.device)
    leaves = x.leaves(lambda t: t[None])
    forward, backward = through_autograd(
        lambda: attend(*leaves, block_mask=block_mask, enable_gqa=True), leaves, x.dout[None]
    )
    return Peer(forward, backward, tuple(g[0] for g in backward()))


def fa3(mask: Mask, x: Inputs) -> Peer:
    import flash_attn_3._C  # noqa: F401 -- registers torch.ops.flash_attn_3

    library = torch.ops.flash_attn_3
    q, k, v, dout = (t.transpose(0, 1).contiguous() for t in (x.q, x.k, x.v, x.dout))
    lengths: tuple[torch.Tensor | None, ...] = (None, None)
    longest: tuple[int | None, ...] = (None, None)
    causal, left, right = False, -1, -1
    try:
        view = varlen.lower(mask.slices, mask.seqlen, mask.seqlen)
        sums = view.cu_seqlens_q, view.cu_seqlens_k
        lengths, longest = (
            tuple(torch.from_numpy(c).to(q.device) for c in sums),
            tuple(int(np.diff(c).max()) for c in sums),
        )
        causal = view.causal
    except ViewUnavailable:
        band = window.lower(mask.slices, mask.seqlen, mask.seqlen)
        left, right = band.left, band.right
    if len(lengths[0] if lengths[0] is not None else ()) <= 2:  # one sequence: the kernels for batches
        lengths, longest = (None, None), (None, None)
        q, k, v, dout = (t[None] for t in (q, k, v, dout))

    def forward() -> tuple[torch.Tensor, ...]:
        return library.fwd(
            q, k, v, cu_seqlens_q=lengths[0], cu_seqlens_k=lengths[1], max_seqlen_q=longest[0],
            max_seqlen_k=longest[1], softmax_scale=x.q.shape[-1] ** -0.5, is_causal=causal,
            window_size_left=left, window_size_right=right, num_splits=1,
        )  # fmt: skip

    out, lse = forward()[:2]

    def backward() -> tuple[torch.Tensor, ...]:
        gradients = tuple(map(torch.empty_like, (q, k, v)))
        library.bwd(
            dout, q, k, v, out, lse, *gradients, *lengths, None, None, *longest, x.q.shape[-1] ** -0.5,
            causal, left, right, 0.0, False, 0,
        )  # fmt: skip
        return gradients

    return Peer(forward, backward, tuple(g.view(-1, *g.shape[-2:]).transpose(0, 1) for g in backward()))


PEERS: dict[str, Callable[[Mask, Inputs], Peer]] = {
    "segments": ours,
    "segments_triton": lambda mask, x: ours(mask, x, "triton"),
    "flex": flex,
    "fa3": fa3,
}


def time_in_turn(calls: dict[str, Call], repeats: int, passes: int) -> dict[str, list[float]]:
    """Milliseconds: one median a pass, for each peer."""
    flush = torch.empty(FLUSH_BYTES, dtype=torch.uint8, device="cuda")
    for call in calls.values():
        call()
    result: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(passes):
        for name, call in calls.items():
            events = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(repeats)]
            for begin, end in events:
                flush.zero_()
                torch.cuda._sleep(SLEEP_CYCLES)
                begin.record()
                call()
                end.record()
            torch.cuda.synchronize()
            result[name].append(median(begin.elapsed_time(end) for begin, end in events))
    return result


def difference(a: tuple[torch.Tensor, ...], b: tuple[torch.Tensor, ...]) -> float:
    return max(float((x.double() - y.double()).norm() / y.double().norm()) for x, y in zip(a, b, strict=True))


def draw_inputs(seqlen: int, heads: tuple[int, int], dim: int) -> Inputs:
    generator = torch.Generator("cuda").manual_seed(0)
    counts = heads[0], heads[1], heads[1], heads[0]
    draw = (torch.randn(n, seqlen, dim, device="cuda", generator=generator) for n in counts)
    return Inputs(*(t.bfloat16() for t in draw))


def measure(
    pattern: str,
    seqlen: int,
    heads: tuple[int, int],
    dim: int,
    peers: dict[str, Callable[[Mask, Inputs], Peer]],
    counts: tuple[int, int],
) -> dict:
    """One row: each peer's milliseconds a pass, and how far its gradients are from those of the first."""
    mask, x = draw_mask(pattern, seqlen), draw_inputs(seqlen, heads, dim)
    row = {
        "pattern": pattern,
        "seqlen": seqlen,
        "heads": heads,
        "head_dim": dim,
        "cells": area(mask.slices),
        "left_out": {},
    }
    ready: dict[str, Peer] = {}
    for name, make in peers.items():
        try:
            ready[name] = make(mask, x)
        except (ImportError, ViewUnavailable, RuntimeError) as error:
            row["left_out"][name] = f"{type(error).__name__}: {error}"[:300]
    base = next(iter(ready.values())).gradients
    row["difference"] = {name: difference(peer.gradients, base) for name, peer in ready.items()}
    for direction in ("forward", "backward"):
        row[direction] = time_in_turn(
            {name: getattr(peer, direction) for name, peer in ready.items()}, *counts
        )
    return row


def line(row: dict) -> str:
    flops = 4e-9 * row["cells"] * row["heads"][0] * row["head_dim"]
    parts = [f"{row['seqlen']:7d} {row['pattern']:22s}"]
    for direction, factor in (("forward", 1.0), ("backward", 2.5)):
        times = row[direction]
        mine = median(next(iter(times.values())))
        for name, passes in times.items():
            rates = sorted(factor * flops / t for t in passes)
            parts.append(f"{name} {rates[0]:.0f}-{rates[-1]:.0f} ({median(passes) / mine:.2f}x)")
        parts.append("|")
    return " ".join([*parts, " ".join(f"{n} {d:.0e}" for n, d in row["difference"].items())])


def main(
    seqlen: Annotated[list[int], typer.Option(help="Tokens; repeatable.")] = [8192],  # noqa: B006
    pattern: Annotated[list[str] | None, typer.Option(help="Patterns; all static ones by default.")] = None,
    peer: Annotated[list[str] | None, typer.Option(help="Peers beside segments; all by default.")] = None,
    q_heads: Annotated[int, typer.Option(help="Query heads.")] = 64,
    kv_heads: Annotated[int, typer.Option(help="KV heads.")] = 8,
    head_dim: Annotated[int, typer.Option(help="64 or 128.")] = 128,
    repeats: Annotated[int, typer.Option(help="Calls a pass.")] = 10,
    passes: Annotated[int, typer.Option(help="Passes.")] = 5,
    out: Annotated[Path | None, typer.Option(help="Also write the rows here, as JSON.")] = None,
) -> None:
    """Print TFLOP/s of each peer, lowest and highest pass, and its time over ours."""
    names = ["segments", *(peer or [name for name in PEERS if name != "segments"])]
    peers = {name: PEERS[name] for name in names}
    rows = []
    for tokens in seqlen:
        for name in pattern or PATTERNS:
            rows.append(measure(name, tokens, (q_heads, kv_heads), head_dim, peers, (repeats, passes)))
            print(line(rows[-1]), flush=True)
            if out:
                out.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    typer.run(main)
