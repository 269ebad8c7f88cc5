"""The rows of masks in tiles: what lowerings to steps of several widths share."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from longca.ops.segments.pieces import SliceList
from longca.ops.segments.row_intervals import RowIntervals, order_by, row_intervals

_FAR = 1 << 40


@dataclass(frozen=True)
class TiledRows:
    """The intervals of `masks` masks, each of `tiles` tiles of `tile_rows` rows; int64 tensors of one length.

    tile: of each interval, counted over all masks. order: of the intervals by tile, then low; None where they stand in
    it. gap: in that order, how many columns lie between an interval and what those before it in its tile reach; of a
    tile's first, more than there are columns. rows: of each mask.
    """

    seen: RowIntervals
    tile: torch.Tensor
    order: torch.Tensor | None
    gap: torch.Tensor
    rows: int
    masks: int
    tiles: int
    tile_rows: int

    def in_rows(self, ordered: torch.Tensor) -> torch.Tensor:
        """What stands in the tiles' order, in the intervals' own."""
        return ordered if self.order is None else torch.empty_like(ordered).scatter_(0, self.order, ordered)


def tiled_rows(
    masks: Sequence[SliceList], rows: int, tile_rows: int, device: torch.device, transpose: bool = False
) -> TiledRows:
    """`rows` are keys when `transpose`."""
    tiles = -(-rows // tile_rows)
    # each mask starts at a tile of its own
    seen = row_intervals(masks, tiles * tile_rows, tile_rows, device, transpose)
    tile, low, high = seen.row // tile_rows, seen.low, seen.high
    order = order_by(tile, low)
    base = tile * _FAR  # one cumulative maximum serves all tiles
    if order is not None:
        base, low, high = base[order], low[order], high[order]
    reach = _running_maximum(high + base)
    gap = torch.full_like(low, _FAR)
    gap[1:] = low[1:] + base[1:] - reach[:-1]
    return TiledRows(seen, tile, order, gap, rows, len(masks), tiles, tile_rows)


def _running_maximum(values: torch.Tensor) -> torch.Tensor:
    """By doubling: torch.cummax, which also says where, is many times as slow on a GPU."""
    reach = 1
    while reach < len(values):
        values = torch.cat([values[:reach], torch.maximum(values[reach:], values[:-reach])])
        reach *= 2
    return values
