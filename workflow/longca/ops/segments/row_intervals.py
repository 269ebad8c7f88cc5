"""The rows of masks as intervals of columns, found by torch operations on the device."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from longca.ops.segments.pieces import SliceList, Table, all_full

_FAR = 1 << 40
# What a type keeps on the left and on the right of its diagonal.
_REACH = {"full": (-_FAR, _FAR), "causal": (-_FAR, 0), "inv_causal": (0, _FAR), "bi_causal": (0, 0)}


@dataclass(frozen=True)
class RowIntervals:
    """Disjoint intervals low <= column < high of groups of rows that are alike, sorted; int64 tensors of one length.

    row: the first of a group. alike: rows of the group. unit: a number of rows that every group begins at a multiple
    of, and has a multiple of; it divides a tile.
    """

    row: torch.Tensor
    alike: torch.Tensor
    low: torch.Tensor
    high: torch.Tensor
    unit: int


def row_intervals(
    masks: Sequence[SliceList], stride: int, tile_rows: int, device: torch.device, transpose: bool
) -> RowIntervals:
    """The intervals of every row, neighbours joined.

    Rows of mask m start at m * stride. Where all slices are full, the rows between two boundaries (of slices or
    tiles) are alike and stand for one another: a block map is lowered by blocks, not by rows.
    """
    counts = torch.tensor([len(mask) for mask in masks], device=device)
    base = (torch.arange(len(masks), device=device) * stride).repeat_interleave(counts)
    # columns one after another: of a map's millions of pieces each is read several times
    q0, q1, k0, k1 = torch.cat([_pieces(mask, device) for mask in masks]).T.contiguous()
    full = all_full(masks)
    if not full:
        # key >= query + left, key <= query + right
        left, right = torch.cat([_reaches(mask, device) for mask in masks]).T
        left, right = left + (k0 - q0), right + (k1 - q1)
        if transpose:
            left, right = -right, -left
    if transpose:
        q0, q1, k0, k1 = k0, k1, q0, q1
    end = len(masks) * stride
    if full:
        # marked, not sorted: a long map has millions of slices, but few rows
        cut = torch.zeros(end + 1, dtype=torch.bool, device=device)
        cut[::tile_rows] = cut[q0 + base] = cut[q1 + base] = True
        cuts, place = cut.nonzero()[:, 0], cut.cumsum(0) - 1
        unit = _common_divisor(cuts, tile_rows)
    else:
        cuts = place = torch.arange(end + 1, device=device)
        unit = 1
    begin = place[q0 + base]
    count = place[q1 + base] - begin
    owner = torch.repeat_interleave(count)
    group = torch.arange(len(owner), device=device) - (count.cumsum(0) - count - begin)[owner]
    low, high = k0[owner], k1[owner]
    if not full:
        local = cuts[group] - base[owner]
        low = torch.maximum(low, local + left[owner])
        high = torch.minimum(high, local + right[owner] + 1)
    keep = low < high
    if not keep.all():
        group, low, high = group[keep], low[keep], high[keep]
    order = order_by(group, low)
    if order is not None:
        group, low, high = group[order], low[order], high[order]
    first = torch.ones_like(group, dtype=torch.bool)
    first[1:] = (group[1:] != group[:-1]) | (low[1:] != high[:-1])
    begin = first.nonzero()[:, 0]
    last = first.roll(-1).nonzero()[:, 0]
    group, low, high = group[begin], low[begin], high[last]
    return RowIntervals(cuts[group], cuts.diff()[group], low, high, unit)


def order_by(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor | None:
    """The order by `first`, then `second`, of numbers of at least 0; None where they stand in it."""
    if not len(first):
        return None
    span = int(second.max()) + 1
    key = first * span + second
    if (key[1:] >= key[:-1]).all():
        return None
    # half as wide, keys are sorted in half the time
    return torch.sort(key.int() if int(key.max()) < 1 << 31 else key, stable=True).indices


def _common_divisor(cuts: torch.Tensor, tile_rows: int) -> int:
    """Of tile_rows and all cuts."""
    seen = torch.zeros(tile_rows, dtype=torch.bool, device=cuts.device)
    seen[cuts % tile_rows] = True
    return math.gcd(tile_rows, *seen.nonzero()[:, 0].tolist())


def _pieces(mask: SliceList, device: torch.device) -> torch.Tensor:
    """int64 [n, 4]: q0, q1, k0, k1."""
    if isinstance(mask, Table):
        return torch.as_tensor(mask, dtype=torch.int64, device=device)
    return _numbers([piece[:4] for piece in mask], 4, device)


def _reaches(mask: SliceList, device: torch.device) -> torch.Tensor:
    """int64 [n, 2]: what each piece keeps on the left and on the right of its diagonal."""
    if isinstance(mask, Table):
        return torch.tensor(_REACH["full"], device=device).expand(len(mask), 2)
    return _numbers([_REACH[piece[4]] for piece in mask], 2, device)


def _numbers(rows: Sequence[Sequence[int]], width: int, device: torch.device) -> torch.Tensor:
    return torch.from_numpy(np.array(rows, np.int64).reshape(-1, width)).to(device)
