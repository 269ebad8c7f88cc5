"""The segments view computed by torch operations on the device: no loop over tiles or rows.

Gives the arrays of longca.masks.views.segments.lower (the definition, in NumPy) for one mask or for
one a KV head; several masks are lowered together, as if their rows followed one another.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from longca.ops.segments.pieces import SliceList
from longca.ops.segments.tiled_rows import TiledRows, tiled_rows


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

    @property
    def whole(self) -> bool:
        """Whether no step has a cell to mask."""
        _, steps, whole_begin, whole_end, _, _ = self.segments.T
        return bool(((whole_begin == 0) & (whole_end == steps)).all())


@dataclass(frozen=True)
class Outline:
    """Segments but for the bounds of their rows: what a tile costs is known, and little has been written yet.

    segment: of each interval of `tiled`. Of each segment: fields, the first four of SEGMENT_FIELDS, and whether it is
    uniform (all rows have the same bounds). tiles as in DeviceSegments.
    """

    tiled: TiledRows
    segment: torch.Tensor
    fields: torch.Tensor
    uniform: torch.Tensor
    tiles: torch.Tensor
    tile_columns: int

    @property
    def cells(self) -> int:
        """Cells that a kernel computes."""
        return int(self.tiles[:, 4].sum()) * self.tiled.tile_rows * self.tile_columns


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
    tiled = tiled_rows(masks, rows, tile_rows, device, transpose)
    return with_bounds(outline(tiled, tile_columns, transpose, align))


def outline(tiled: TiledRows, tile_columns: int, transpose: bool = False, align: int = 1) -> Outline:
    """Segments without the rows' bounds, which are most of what `lower` writes, for one of the widths of `tiled`."""
    rows, tile_rows, tiles = tiled.rows, tiled.tile_rows, tiled.masks * tiled.tiles
    segment, count = _segments(tiled, tile_columns)
    device = segment.device
    low, high = tiled.seen.low.int(), tiled.seen.high.int()  # half as much to read and write
    tile = segment.new_empty(count).scatter_(0, segment, tiled.tile)
    row_begin = (torch.arange(tiles, device=device) % tiled.tiles) * tile_rows
    row_end = (row_begin + tile_rows).clamp(max=rows)

    def reduce(values: torch.Tensor, how: str) -> torch.Tensor:
        return values.new_zeros(count).scatter_reduce(0, segment, values, how, include_self=False)

    least, most, low_most, high_least = (
        reduce(*pair) for pair in ((low, "amin"), (high, "amax"), (low, "amax"), (high, "amin"))
    )
    here = (row_end - row_begin)[tile]
    every_row = torch.zeros_like(here).index_add(0, segment, tiled.seen.alike) == here
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
    first = torch.searchsorted(tile, torch.arange(tiles + 1, device=device))
    # a difference of sums: hundreds of segments adding to one tile would wait for each other
    work = torch.nn.functional.pad(steps.cumsum(0), (1, 0))[first].diff()
    table = torch.stack([row_begin, row_end, first[:-1], first[1:], work], 1).int()
    return Outline(tiled, segment, fields, uniform, table, tile_columns)


def with_bounds(outlined: Outline) -> DeviceSegments:
    """The segments of an outline, with the bounds of their rows.

    A uniform segment has one pair of bounds, another a pair a row, alike in groups of `unit` rows.
    """
    tiled, seen, uniform = outlined.tiled, outlined.tiled.seen, outlined.uniform
    tile_rows, unit = tiled.tile_rows, seen.unit
    mixed = ~uniform[outlined.segment]
    # First the bounds of each group, then each as often as it has rows.
    groups = torch.where(uniform, 1, tile_rows // unit)
    begin = groups.cumsum(0) - groups
    copies = torch.where(mixed, seen.alike // unit, 1)
    source = torch.repeat_interleave(copies)
    place = begin[outlined.segment] + torch.where(mixed, seen.row % tile_rows // unit, 0)
    place = (place - (copies.cumsum(0) - copies))[source] + torch.arange(len(source), device=source.device)
    bounds = torch.zeros((2, int(groups.sum())), dtype=torch.int32, device=source.device)
    bounds[0, place], bounds[1, place] = seen.low.int()[source], seen.high.int()[source]
    low, high = bounds
    if unit > 1:
        # the longest of all that is written: one index of 32 bits serves low and high
        times = torch.where(uniform, 1, unit).int().repeat_interleave(groups)
        index = torch.repeat_interleave(times)
        low, high = low.index_select(0, index), high.index_select(0, index)

    size = torch.where(uniform, 1, tile_rows)
    spread = torch.where(uniform, 0, 1)
    fields = torch.cat([outlined.fields, torch.stack([size.cumsum(0) - size, spread], 1)], 1).int()
    shape = (tiled.rows, tiled.masks, tile_rows, outlined.tile_columns)
    return DeviceSegments(outlined.tiles, fields, low, high, *shape)


def _segments(tiled: TiledRows, tile_columns: int) -> tuple[torch.Tensor, int]:
    """The segment of each interval, and how many there are.

    Within a run a row's n-th interval goes to the run's n-th segment. A tile's intervals share a run unless
    `tile_columns` or more unused columns lie between.
    """
    run = tiled.in_rows((tiled.gap >= tile_columns).cumsum(0) - 1)
    if not len(run):
        return run, 0
    # A row's intervals of one run stand together.
    start = torch.ones_like(run, dtype=torch.bool)
    start[1:] = (run[1:] != run[:-1]) | (tiled.seen.row[1:] != tiled.seen.row[:-1])
    place = start.cumsum(0) - 1
    rank = torch.arange(len(run), device=run.device) - start.nonzero()[:, 0][place]
    sizes = run.new_zeros(int(run.max()) + 1, dtype=torch.int32).scatter_reduce(
        0, run, rank.int() + 1, "amax"
    )
    ends = sizes.cumsum(0)
    return (ends - sizes)[run] + rank, int(ends[-1])
