"""The rows of masks as intervals of columns, found by torch operations on the device."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from longca.ops.segments.plan import SliceList, Table, all_full

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
    table = torch.cat([_table(mask, i * stride, device) for i, mask in enumerate(masks)])
    q0, q1, k0, k1, left, right, base = table.T
    left, right = left + (k0 - q0), right + (k1 - q1)  # key >= query + left, key <= query + right
    if transpose:
        q0, q1, k0, k1, left, right = k0, k1, q0, q1, -right, -left
    end = len(masks) * stride
    if all_full(masks):
        # marked, not sorted: a long map has millions of slices, but few rows
        cut = torch.zeros(end + 1, dtype=torch.bool, device=device)
        cut[::tile_rows] = cut[q0 + base] = cut[q1 + base] = True
        cuts, place = cut.nonzero()[:, 0], cut.cumsum(0) - 1
        unit = math.gcd(tile_rows, *cuts.tolist())
    else:
        cuts = place = torch.arange(end + 1, device=device)
        unit = 1
    begin = place[q0 + base]
    count = place[q1 + base] - begin
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
    return RowIntervals(cuts[group], cuts.diff()[group], low, high, unit)


def _table(mask: SliceList, base: int, device: torch.device) -> torch.Tensor:
    """int64 [n, 7]: q0, q1, k0, k1, what left and right of the diagonal is kept, the mask's first row."""
    if isinstance(mask, Table):
        pieces = torch.as_tensor(mask, dtype=torch.int64, device=device)
        rest = torch.tensor([*_REACH["full"], base], device=device).expand(len(pieces), 3)
        return torch.cat([pieces, rest], 1)
    rows = [(q0, q1, k0, k1, *_REACH[kind], base) for q0, q1, k0, k1, kind in mask]
    return torch.from_numpy(np.array(rows, np.int64).reshape(-1, 7)).to(device)
