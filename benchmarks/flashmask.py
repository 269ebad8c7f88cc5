"""Times FlashMask's Triton kernels against FlexAttention's and segments, and their tile sizes against each other.

python benchmarks/flashmask.py --seqlen 8192 [--pattern causal] [--tiles] [--out figures.json]

Needs a GPU. Peers take turns in one process and are measured as `benchmarks/segments.py` does; the ratio in brackets is
a peer's time over that of the first one. With `--tiles` the peers are FlashMask with one kernel's tile replaced.
"""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import torch
import typer
from segments import Inputs, Peer, flex, line, measure, ours

from longca.masks.mask import Mask
from longca.masks.patterns import PATTERNS
from longca.masks.views import flashmask as view
from longca.ops import flashmask as operator
from longca.ops.flashmask.tiles import BY_HEAD_DIM, Tile, Tiles

TRIED = {
    "forward": (Tile(128, 64, 3, 8), Tile(128, 64, 4, 8), Tile(64, 64, 2, 4)),
    "queries": (Tile(128, 64, 2, 8), Tile(64, 64, 3, 4)),
    "keys": (Tile(64, 128, 3, 8), Tile(64, 64, 2, 4), Tile(32, 128, 3, 8)),
}


def flashmask(mask: Mask, x: Inputs, tiles: Tiles | None = None) -> Peer:
    (heads, seqlen, dim), kv_heads = x.q.shape, x.k.shape[0]
    lowered = view.lower(mask.slices, seqlen, seqlen)
    plan = operator.plan(lowered, heads, kv_heads, dim, x.q.device, tiles)
    out, lse = operator.forward(x.q, x.k, x.v, plan)

    def backward() -> tuple[torch.Tensor, ...]:
        return operator.backward(x.q, x.k, x.v, out, lse, x.dout, plan)

    return Peer(lambda: operator.forward(x.q, x.k, x.v, plan), backward, backward())


def tile_peers(head_dim: int) -> dict[str, Callable[[Mask, Inputs], Peer]]:
    """FlashMask as it is, and with one kernel's tile replaced by each that was tried."""
    chosen = BY_HEAD_DIM[head_dim]
    variants = {"flashmask": chosen}
    for kernel, tiles in TRIED.items():
        for tile in tiles:
            name = f"{kernel} {tile.rows}x{tile.columns} {tile.stages} stages {tile.warps} warps"
            variants[name] = replace(chosen, **{kernel: tile})
    return {name: lambda mask, x, tiles=tiles: flashmask(mask, x, tiles) for name, tiles in variants.items()}


def main(
    seqlen: Annotated[list[int], typer.Option(help="Tokens; repeatable.")] = [8192],  # noqa: B006
    pattern: Annotated[list[str] | None, typer.Option(help="Patterns; all static ones by default.")] = None,
    tiles: Annotated[bool, typer.Option(help="Compare tile sizes instead of libraries.")] = False,
    q_heads: Annotated[int, typer.Option(help="Query heads.")] = 64,
    kv_heads: Annotated[int, typer.Option(help="KV heads.")] = 8,
    head_dim: Annotated[int, typer.Option(help="64 or 128.")] = 128,
    repeats: Annotated[int, typer.Option(help="Calls a pass.")] = 10,
    passes: Annotated[int, typer.Option(help="Passes.")] = 3,
    out: Annotated[Path | None, typer.Option(help="Also write the rows here, as JSON.")] = None,
) -> None:
    """Print TFLOP/s of each peer, lowest and highest pass, and its time over FlashMask's."""
    peers = tile_peers(head_dim) if tiles else {"flashmask": flashmask, "flex": flex, "segments": ours}
    rows = []
    for tokens in seqlen:
        for name in pattern or PATTERNS:
            rows.append(measure(name, tokens, (q_heads, kv_heads), head_dim, peers, (repeats, passes)))
            print(line(rows[-1]).replace(" | ", "\n    "), flush=True)
            if out:
                out.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    typer.run(main)
