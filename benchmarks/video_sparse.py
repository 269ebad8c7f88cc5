"""Times both forms of our Video Sparse Attention, fastvideo-kernel's and segments, and launches of the Triton form.

python benchmarks/video_sparse.py --seqlen 8192 --density 0.26 [--kv-heads 8] [--launches] [--out figures.json]

Needs a GPU. Peers take turns in one process and are measured as `benchmarks/segments.py` does, all on lists made
beforehand; the ratio in brackets is a peer's time over that of the first one, our Triton form. With `--launches` the
peers are that form with one kernel's launch replaced. fastvideo-kernel takes equal head counts only.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import torch
import typer
from segments import Inputs, Peer, difference, draw_inputs, line, time_in_turn

from longca.masks.blocks import BlockMap, draw_block_map
from longca.masks.views.block_lists import block_lists
from longca.ops import segments, video_sparse
from longca.ops.video_sparse.plan import TABLE, Launch, Launches

BLOCK = 64


def ours(block_map: BlockMap, x: Inputs, form: str, launches: Launches | None = None) -> Peer:
    plan = video_sparse.plan(block_map, x.q.shape[0], x.q.shape[2], x.q.device, form, launches)
    out, lse = video_sparse.forward(x.q, x.k, x.v, plan)

    def backward() -> tuple[torch.Tensor, ...]:
        return video_sparse.backward(x.q, x.k, x.v, out, lse, x.dout, plan)

    return Peer(lambda: video_sparse.forward(x.q, x.k, x.v, plan), backward, backward())


def segments_peer(block_map: BlockMap, x: Inputs) -> Peer:
    (heads, seqlen, dim), kv_heads = x.q.shape, x.k.shape[0]
    masks = [block_map.rectangles(head) for head in range(kv_heads)]
    plan = segments.plan(masks, seqlen, seqlen, heads, kv_heads, dim, x.q.dtype, x.q.device)
    out, lse = segments.forward(x.q, x.k, x.v, plan)

    def backward() -> tuple[torch.Tensor, ...]:
        return segments.backward(x.q, x.k, x.v, out, lse, x.dout, plan)

    return Peer(lambda: segments.forward(x.q, x.k, x.v, plan), backward, backward())


def fastvideo(block_map: BlockMap, x: Inputs) -> tuple[list[torch.Tensor], list[torch.Tensor], torch.Tensor]:
    """q, k, v, dout with a batch; lists as wide as the map and counts of both orientations; the blocks' sizes."""
    lists = [block_lists(block_map, x.q.shape[0], x.q.device, side, compact=False) for side in (False, True)]
    (row_counts, rows), (column_counts, columns) = ([part[None] for part in side] for side in lists)
    sizes = torch.full((block_map.seqlen // BLOCK,), BLOCK, dtype=torch.int32, device=x.q.device)
    tensors = [t[None] for t in (x.q, x.k, x.v, x.dout)]
    return tensors, [rows, row_counts, columns, column_counts], sizes


def fastvideo_triton(block_map: BlockMap, x: Inputs) -> Peer:
    from fastvideo_kernel.triton_kernels import block_sparse_attn_triton as library

    (q, k, v, dout), lists, sizes = fastvideo(block_map, x)

    def forward() -> tuple[torch.Tensor, torch.Tensor]:
        return library.triton_block_sparse_attn_forward(q, k, v, *lists[:2], sizes)

    out, lse = forward()

    def backward() -> tuple[torch.Tensor, ...]:
        return library.triton_block_sparse_attn_backward(dout, q, k, v, out, lse, *lists, sizes)

    return Peer(forward, backward, tuple(gradient[0] for gradient in backward()))


def fastvideo_thunderkittens(block_map: BlockMap, x: Inputs) -> Peer:
    from fastvideo_kernel._C import fastvideo_kernel_ops as library

    (q, k, v, dout), lists, sizes = fastvideo(block_map, x)

    def forward() -> tuple[torch.Tensor, torch.Tensor]:
        return library.block_sparse_fwd(q, k, v, *lists[:2], sizes)

    out, lse = forward()

    def backward() -> tuple[torch.Tensor, ...]:
        gradients = library.block_sparse_bwd(q, k, v, out, lse, dout, *lists[2:], sizes)
        return tuple(gradient.to(q.dtype) for gradient in gradients)

    return Peer(forward, backward, tuple(gradient[0] for gradient in backward()))


PEERS: dict[str, Callable[[BlockMap, Inputs], Peer]] = {
    "vsa_triton": partial(ours, form="triton"),
    "vsa_gluon": partial(ours, form="gluon"),
    "fastvideo_triton": fastvideo_triton,
    "fastvideo_thunderkittens": fastvideo_thunderkittens,
    "segments": segments_peer,
}


def launch_peers(head_dim: int) -> dict[str, Callable[[BlockMap, Inputs], Peer]]:
    """Our kernels as they are, and with one kernel's launch replaced by others."""
    chosen, variants = TABLE[head_dim], {}
    variants["vsa_triton"] = chosen
    for kernel in ("forward", "queries", "keys"):
        warps = getattr(chosen, kernel).warps
        for launch in (Launch(2, warps), Launch(3, warps), Launch(4, warps)):
            if launch != getattr(chosen, kernel):
                name = f"{kernel} {launch.stages} stages {launch.warps} warps"
                variants[name] = replace(chosen, **{kernel: launch})
    return {name: partial(ours, form="triton", launches=launches) for name, launches in variants.items()}


def measure(
    peers: dict[str, Callable[[BlockMap, Inputs], Peer]],
    block_map: BlockMap,
    x: Inputs,
    counts: tuple[int, int],
) -> dict:
    """One row: each peer's milliseconds a pass, and how far its gradients are from those of the first."""
    row = {
        "pattern": f"uniform_block {block_map.density:.2f}",
        "seqlen": block_map.seqlen,
        "heads": (x.q.shape[0], x.k.shape[0]),
        "head_dim": x.q.shape[2],
        "cells": block_map.area,
        "left_out": {},
    }
    ready: dict[str, Peer] = {}
    for name, make in peers.items():
        try:
            ready[name] = make(block_map, x)
        except (ImportError, RuntimeError, ValueError) as error:
            row["left_out"][name] = f"{type(error).__name__}: {error}"[:300]
    base = next(iter(ready.values())).gradients
    row["difference"] = {name: difference(peer.gradients, base) for name, peer in ready.items()}
    for direction in ("forward", "backward"):
        calls = {name: getattr(peer, direction) for name, peer in ready.items()}
        row[direction] = time_in_turn(calls, *counts)
    return row


def main(
    seqlen: Annotated[list[int], typer.Option(help="Tokens; repeatable.")] = [8192],  # noqa: B006
    density: Annotated[list[float], typer.Option(help="Share of blocks; repeatable.")] = [0.26],  # noqa: B006
    launches: Annotated[bool, typer.Option(help="Compare launches instead of libraries.")] = False,
    q_heads: Annotated[int, typer.Option(help="Query heads.")] = 64,
    kv_heads: Annotated[
        int, typer.Option(help="KV heads; fastvideo-kernel takes as many as query heads.")
    ] = 64,
    head_dim: Annotated[int, typer.Option(help="64 or 128.")] = 128,
    repeats: Annotated[int, typer.Option(help="Calls a pass.")] = 10,
    passes: Annotated[int, typer.Option(help="Passes.")] = 3,
    out: Annotated[Path | None, typer.Option(help="Also write the rows here, as JSON.")] = None,
) -> None:
    """Print TFLOP/s of each peer, lowest and highest pass, and its time over the first one's."""
    peers = PEERS
    if launches:
        peers = launch_peers(head_dim)
    elif q_heads != kv_heads:
        peers = {name: peer for name, peer in PEERS.items() if not name.startswith("fastvideo")}
    rows = []
    for tokens in seqlen:
        x = draw_inputs(tokens, (q_heads, kv_heads), head_dim)
        for share in density:
            block_map = draw_block_map("uniform_block", tokens, BLOCK, share, kv_heads)
            rows.append(measure(peers, block_map, x, (repeats, passes)))
            print(line(rows[-1]).replace(" | ", "\n    "), rows[-1]["left_out"] or "", flush=True)
            if out:
                out.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    typer.run(main)
