"""What a mask is prepared into for given shapes."""

from dataclasses import dataclass
from typing import Any

import torch

from longca.masks.views.flashmask import FlashMask
from longca.ops.flashmask.columns import Columns, load
from longca.ops.flashmask.skipping import spans_kernel, transposed_spans_kernel
from longca.ops.flashmask.tiles import BY_HEAD_DIM, INTERPRETED, Tile, Tiles

CACHE_BYTES = 32e6  # of L2 that the tensors all programs in flight walk over may take


@dataclass(frozen=True, eq=False)
class Walk:
    """What a kernel's programs step over.

    extrema int32 [8, key blocks]. spans int32 [programs a head, 3]: first and end step, and how many of them are not
    skipped. order int32: programs, those with most steps first. section: heads that run together, so that what they
    read stays in the cache.
    """

    tile: Tile
    extrema: torch.Tensor
    spans: torch.Tensor
    order: torch.Tensor
    section: int


@dataclass(frozen=True, eq=False)
class Plan:
    """A FlashMask ready for tensors of these shapes.

    splits: programs that share a KV head's query heads in the backward; their dK and dV are summed in fp32.
    """

    queries: int
    keys: int
    q_heads: int
    kv_heads: int
    head_dim: int
    device: torch.device
    columns: Columns
    chunk: int
    forward: Walk
    backward_queries: Walk
    backward_keys: Walk
    splits: int

    @property
    def group(self) -> int:
        """Query heads that share a KV head."""
        return self.q_heads // self.kv_heads

    @property
    def scale(self) -> float:
        """What multiplies the scores before the softmax."""
        return self.head_dim**-0.5

    @property
    def form(self) -> dict[str, bool]:
        """The kernels' switches for the mask's form."""
        columns = self.columns
        return {"CAUSAL": columns.causal, "LOWER_END": columns.lower_end, "UPPER_START": columns.upper_start}


def plan(
    view: FlashMask,
    q_heads: int,
    kv_heads: int,
    head_dim: int,
    device: torch.device,
    tiles: Tiles | None = None,
) -> Plan:
    """Copies the vectors to the device and finds there which steps each program has.

    tiles: by head_dim when None. Raises ValueError for heads that do not divide, or a head_dim without tiles.
    """
    if q_heads % kv_heads:
        raise ValueError(f"q_heads {q_heads} is no multiple of kv_heads {kv_heads}")
    if tiles is None and device.type == "cuda" and head_dim not in BY_HEAD_DIM:
        raise ValueError(f"head_dim {head_dim} is none of {', '.join(map(str, BY_HEAD_DIM))}")
    chosen = tiles or (BY_HEAD_DIM[head_dim] if device.type == "cuda" else INTERPRETED)
    columns = load(view, device)
    group, programs = q_heads // kv_heads, _processors(device)
    fits = _section(kv_heads, view.keys * head_dim * 4)
    keys_walk = _walk_queries(columns, view, chosen.keys, chosen.chunk)
    splits = _splits(keys_walk[1][:, 2], group, kv_heads, programs)
    # A part of a KV head reads its query heads' q and dout.
    part_fits = _section(kv_heads * splits, view.queries * head_dim * 4 * (group // splits))
    return Plan(
        view.queries, view.keys, q_heads, kv_heads, head_dim, device, columns, chosen.chunk,
        Walk(chosen.forward, *_walk_keys(columns, view, chosen.forward, chosen.chunk), fits * group),
        Walk(chosen.queries, *_walk_keys(columns, view, chosen.queries, chosen.chunk), fits * group),
        Walk(chosen.keys, *keys_walk, part_fits), splits,
    )  # fmt: skip


def _walk_keys(
    columns: Columns, view: FlashMask, tile: Tile, chunk: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    extrema, tiles = columns.extrema(tile.columns), -(-view.queries // tile.rows)
    spans = extrema.new_empty((tiles, 3))
    spans_kernel[(tiles,)](extrema, spans, view.queries, extrema.shape[1], ROWS=tile.rows, CHUNK=chunk)
    return extrema, spans, _longest_first(spans)


def _walk_queries(
    columns: Columns, view: FlashMask, tile: Tile, chunk: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    extrema, tiles = columns.extrema(tile.columns), -(-view.queries // tile.rows)
    blocks = -(-view.keys // tile.columns)
    spans = extrema.new_empty((blocks, 3))
    arguments: tuple[Any, ...] = (extrema, spans, view.queries, tiles, extrema.shape[1])
    transposed_spans_kernel[(blocks,)](*arguments, ROWS=tile.rows, CHUNK=chunk)
    return extrema, spans, _longest_first(spans)


def _longest_first(spans: torch.Tensor) -> torch.Tensor:
    return torch.argsort(spans[:, 2], descending=True, stable=True).to(torch.int32)


def _splits(steps: torch.Tensor, group: int, kv_heads: int, programs: int) -> int:
    """The fewest parts of a group with which no program has more steps than an SM's fair part of all."""
    fair = int(steps.sum()) * group * kv_heads / programs
    longest = int(steps.max()) * group
    parts = [n for n in range(1, group + 1) if group % n == 0]
    return next((n for n in parts if longest / n <= fair), parts[-1])


def _section(heads: int, bytes_each: float) -> int:
    """The most heads, a divisor of all, whose tensors fit the cache together."""
    return max(n for n in range(1, heads + 1) if heads % n == 0 and (n == 1 or n * bytes_each <= CACHE_BYTES))


def _processors(device: torch.device) -> int:
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 4
