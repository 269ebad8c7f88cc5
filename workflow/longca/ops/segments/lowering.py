"""The segments view computed by torch operations on the device: no loop over tiles, rows or heads.

Gives the arrays of longca.masks.views.segments.lower (the definition, in NumPy) for one mask or for
one a KV head; several masks are lowered together, as if their rows followed one another.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from longca.ops.segments.plan import SliceList
from longca.ops.segments.row_intervals import row_intervals

_FAR = 1 << 40


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


@dataclass(frozen=True)
class Outline:
    """Segments but for the bounds of their rows: what a tile costs is known, and little has been written yet.

    Of each interval of rows that are alike: row, alike, low, high, segment. Of each segment: fields, the first four of
    SEGMENT_FIELDS, and whether it is uniform (all rows have the same bounds). tiles as in DeviceSegments.
    """

    row: torch.Tensor
    alike: torch.Tensor
    low: torch.Tensor
    high: torch.Tensor
    segment: torch.Tensor
    unit: int
    fields: torch.Tensor
    uniform: torch.Tensor
    tiles: torch.Tensor
    rows: int
    masks: int
    tile_rows: int
    tile_columns: int

    @property
    def cells(self) -> int:
        """Cells that a kernel computes."""
        return int(self.tiles[:, 4].sum()) * self.tile_rows * self.tile_columns


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
    return with_bounds(outline(masks, rows, tile_rows, tile_columns, device, transpose, align))


def outline(
    masks: Sequence[SliceList],
    rows: int,
    tile_rows: int,
    tile_columns: int,
    device: torch.device,
    transpose: bool = False,
    align: int = 1,
) -> Outline:
    """As `lower`, but without the rows' bounds, which are most of what it writes."""
    tiles = -(-rows // tile_rows)
    stride = tiles * tile_rows  # each mask starts at a tile of its own
    seen = row_intervals(masks, stride, tile_rows, device, transpose)
    row, alike_rows, low, high = seen.row, seen.alike, seen.low, seen.high
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

    uniform = every_row & (least == low_most) & (most == high_least)
    fields = torch.stack([begin, steps, whole_begin, whole_end], 1)
    first = torch.searchsorted(tile, torch.arange(len(masks) * tiles + 1, device=device))
    work = torch.zeros(len(masks) * tiles, dtype=torch.int64, device=device).index_add(0, tile, steps)
    table = torch.stack([row_begin, row_end, first[:-1], first[1:], work], 1).int()
    shape = (rows, len(masks), tile_rows, tile_columns)
    return Outline(row, alike_rows, low, high, segment, seen.unit, fields, uniform, table, *shape)


def with_bounds(outlined: Outline) -> DeviceSegments:
    """The segments of an outline, with the bounds of their rows.

    A uniform segment has one pair of bounds, another a pair a row, alike in groups of `unit` rows.
    """
    tile_rows, unit, uniform = outlined.tile_rows, outlined.unit, outlined.uniform
    mixed = ~uniform[outlined.segment]
    # First the bounds of each group, then each as often as it has rows.
    groups = torch.where(uniform, 1, tile_rows // unit)
    begin = groups.cumsum(0) - groups
    copies = torch.where(mixed, outlined.alike // unit, 1)
    source = torch.repeat_interleave(copies)
    place = begin[outlined.segment] + torch.where(mixed, outlined.row % tile_rows // unit, 0)
    place = (place - (copies.cumsum(0) - copies))[source] + torch.arange(len(source), device=source.device)
    bounds = torch.zeros((2, int(groups.sum())), dtype=torch.int32, device=source.device)
    bounds[0, place], bounds[1, place] = outlined.low.int()[source], outlined.high.int()[source]
    if unit > 1:
        times = torch.where(uniform, 1, unit).repeat_interleave(groups)
        bounds = bounds[:, torch.repeat_interleave(times)]

    size = torch.where(uniform, 1, tile_rows)
    spread = torch.where(uniform, 0, 1)
    fields = torch.cat([outlined.fields, torch.stack([size.cumsum(0) - size, spread], 1)], 1).int()
    shape = (outlined.rows, outlined.masks, tile_rows, outlined.tile_columns)
    return DeviceSegments(outlined.tiles, fields, bounds[0], bounds[1], *shape)


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
