"""The segments view computed by torch operations on the device: no loop over tiles, rows or heads.

Gives the arrays of longca.masks.views.segments.lower (the definition, in NumPy) for one mask or for
one a KV head; several masks are lowered together, as if their rows followed one another.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from longca.ops.segments.plan import SliceList, Table, all_full

_FAR = 1 << 40
# What a type keeps on the left and on the right of its diagonal.
_REACH = {"full": (-_FAR, _FAR), "causal": (-_FAR, 0), "inv_causal": (0, _FAR), "bi_causal": (0, 0)}


@dataclass(frozen=True)
class DeviceSegments:
    """One orientation of `masks` masks; int32 tensors as longca.masks.views.segments.Segments documents them.

    The tiles of a mask follow those of the mask before it, with row numbers that start at 0 again.
    """

    tiles: torch.Tensor
    segments: torch.Tensor
    low: torch.Tensor
    high: torch.Tensor
    rows: int
    masks: int
    tile_rows: int
    tile_columns: int


def lower(
    masks: Sequence[SliceList],
    rows: int,
    tile_rows: int,
    tile_columns: int,
    device: torch.device,
    transpose: bool = False,
    align: int = 1,
) -> DeviceSegments:
    """Slices (q0, q1, k0, k1, type) of every mask as segments; `rows` are keys when `transpose`."""
    tiles = -(-rows // tile_rows)
    stride = tiles * tile_rows  # each mask starts at a tile of its own
    row, alike_rows, low, high = _row_intervals(masks, stride, tile_rows, device, transpose)
    run = _runs(row // tile_rows, low, high, tile_columns)

    # Within a run a row's n-th interval goes to the run's n-th segment; rows stay in order.
    run, order = torch.sort(run, stable=True)
    row, alike_rows, low, high = row[order], alike_rows[order], low[order], high[order]
    position = torch.arange(len(row), device=device)
    start = _starts(row, run)
    rank = position - torch.cummax(torch.where(start, position, 0), 0).values if len(row) else position
    ranks = int(rank.max()) + 1 if len(row) else 1
    key, order = torch.sort(run * ranks + rank, stable=True)
    row, alike_rows, low, high = row[order], alike_rows[order], low[order], high[order]

    start = _starts(key)
    segment = start.cumsum(0) - 1
    at = start.nonzero()[:, 0]
    tile = row[at] // tile_rows
    row_begin = (torch.arange(len(masks) * tiles, device=device) % tiles) * tile_rows
    row_end = (row_begin + tile_rows).clamp(max=rows)
    count = len(at)

    def reduce(values: torch.Tensor, how: str) -> torch.Tensor:
        empty = torch.zeros(count, dtype=values.dtype, device=device)
        return empty.scatter_reduce(0, segment, values, how, include_self=False)

    least, most, low_most, high_least = (
        reduce(*pair) for pair in ((low, "amin"), (high, "amax"), (low, "amax"), (high, "amin"))
    )
    here = (row_end - row_begin)[tile]
    every_row = torch.zeros_like(here).index_add(0, segment, alike_rows) == here
    begin = least // align * align
    steps = -(-(most - begin) // tile_columns)
    whole_begin = -(-(low_most - begin) // tile_columns)
    whole_end = torch.div(high_least - begin, tile_columns, rounding_mode="floor")
    some = every_row & (whole_begin < whole_end)
    if transpose:  # rows past the last key would reach dQ through an unmasked step
        some &= here == tile_rows
    whole_begin, whole_end = torch.where(some, whole_begin, 0), torch.where(some, whole_end, 0)

    alike = every_row & (least == low_most) & (most == high_least)
    size = torch.where(alike, 1, tile_rows)
    offset = size.cumsum(0) - size
    spread = torch.where(alike, 0, 1)
    copies = torch.where(spread[segment] == 1, alike_rows, 1)
    source = torch.repeat_interleave(copies)
    place = offset[segment] + (row % tile_rows) * spread[segment] - (copies.cumsum(0) - copies)
    place = place[source] + torch.arange(len(source), device=device)
    bounds = torch.zeros((2, int(size.sum())), dtype=torch.int32, device=device)
    bounds[0, place], bounds[1, place] = low[source].int(), high[source].int()

    fields = torch.stack([begin, steps, whole_begin, whole_end, offset, spread], 1).int()
    first = torch.searchsorted(tile, torch.arange(len(masks) * tiles + 1, device=device))
    work = torch.zeros(len(masks) * tiles, dtype=torch.int64, device=device).index_add(0, tile, steps)
    table = torch.stack([row_begin, row_end, first[:-1], first[1:], work], 1).int()
    return DeviceSegments(table, fields, bounds[0], bounds[1], rows, len(masks), tile_rows, tile_columns)


def _row_intervals(
    masks: Sequence[SliceList], stride: int, tile_rows: int, device: torch.device, transpose: bool
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """The disjoint intervals of every row, neighbours joined, sorted: first row, rows alike, low, high.

    Rows of mask m start at m * stride. Where all slices are full, the rows between two boundaries (of slices or
    tiles) are alike and stand for one another: a block map is lowered by blocks, not by rows.
    """
    table = torch.cat([_table(mask, i * stride, device) for i, mask in enumerate(masks)])
    q0, q1, k0, k1, left, right, base = table.T
    left, right = left + (k0 - q0), right + (k1 - q1)  # key >= query + left, key <= query + right
    if transpose:
        q0, q1, k0, k1, left, right = k0, k1, q0, q1, -right, -left
    end = len(masks) * stride
    if all_full(masks):
        edges = torch.arange(0, end + 1, tile_rows, device=device)
        cuts = torch.cat([q0 + base, q1 + base, edges]).unique()
    else:
        cuts = torch.arange(end + 1, device=device)
    begin = torch.searchsorted(cuts, q0 + base)
    count = torch.searchsorted(cuts, q1 + base) - begin
    owner = torch.repeat_interleave(count)
    group = torch.arange(len(owner), device=device) - (count.cumsum(0) - count - begin)[owner]
    row = cuts[group]
    local = row - base[owner]
    low = torch.maximum(k0[owner], local + left[owner])
    high = torch.minimum(k1[owner], local + right[owner] + 1)
    keep = low < high
    group, low, high = group[keep], low[keep], high[keep]
    order = torch.argsort(group * (1 << 32) + low)
    group, low, high = group[order], low[order], high[order]
    first = torch.ones_like(group, dtype=torch.bool)
    first[1:] = (group[1:] != group[:-1]) | (low[1:] != high[:-1])
    group, low, high = group[first], low[first], high[first.roll(-1)]
    return cuts[group], cuts.diff()[group], low, high


def _table(mask: SliceList, base: int, device: torch.device) -> torch.Tensor:
    """int64 [n, 7]: q0, q1, k0, k1, what left and right of the diagonal is kept, the mask's first row."""
    if isinstance(mask, Table):
        pieces = torch.as_tensor(mask, dtype=torch.int64, device=device)
        rest = torch.tensor([*_REACH["full"], base], device=device).expand(len(pieces), 3)
        return torch.cat([pieces, rest], 1)
    rows = [(q0, q1, k0, k1, *_REACH[kind], base) for q0, q1, k0, k1, kind in mask]
    return torch.from_numpy(np.array(rows, np.int64).reshape(-1, 7)).to(device)


def _runs(tile: torch.Tensor, low: torch.Tensor, high: torch.Tensor, gap: int) -> torch.Tensor:
    """Numbers the runs: a tile's intervals share one unless `gap` or more unused columns lie between."""
    order = torch.argsort(tile * _FAR + low, stable=True)
    base = tile[order] * _FAR  # one cumulative maximum serves all tiles
    reach = torch.cummax(high[order] + base, 0).values if len(order) else base
    new = torch.ones_like(tile, dtype=torch.bool)
    new[1:] = low[order][1:] + base[1:] >= reach[:-1] + gap
    return torch.empty_like(tile).scatter_(0, order, new.cumsum(0))


def _starts(*keys: torch.Tensor) -> torch.Tensor:
    """True where any of the sorted keys changes."""
    start = torch.ones_like(keys[0], dtype=torch.bool)
    start[1:] = False
    for key in keys:
        start[1:] |= key[1:] != key[:-1]
    return start
