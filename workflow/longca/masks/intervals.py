"""The kept cells of a mask row by row: the form every view but the dense one is derived from."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

_UNBOUNDED = np.int64(1) << 40


@dataclass(frozen=True)
class RowIntervals:
    """Disjoint half-open column intervals [low, high) kept by each row; neighbours are joined.

    row, low, high: int64 [intervals], sorted by row, then by low. A row that keeps nothing does not occur.
    rows, columns: the size of the mask in this orientation.
    """

    row: np.ndarray
    low: np.ndarray
    high: np.ndarray
    rows: int
    columns: int

    @cached_property
    def rank(self) -> np.ndarray:
        """int64 [intervals]: 0 for a row's first interval, 1 for its second, and so on."""
        position = np.arange(len(self.row))
        begins = np.ones(len(self.row), bool)
        begins[1:] = self.row[1:] != self.row[:-1]
        return position - np.maximum.accumulate(np.where(begins, position, 0))

    def layers(self) -> tuple[np.ndarray, np.ndarray]:
        """Low and high as int64 [layers, rows]: layer n holds a row's n-th interval, 0 and 0 where it has
        none.

        There is at least one layer.
        """
        rank = self.rank
        bounds = np.zeros((2, int(rank.max(initial=0)) + 1, self.rows), np.int64)
        bounds[0, rank, self.row], bounds[1, rank, self.row] = self.low, self.high
        return bounds[0], bounds[1]


def row_intervals(
    slices: Sequence[tuple[int, int, int, int, str]], queries: int, keys: int, *, transpose: bool = False
) -> RowIntervals:
    """The intervals each query keeps, or with `transpose` the query intervals each key is kept by.

    Time and memory are linear in rows x intervals a row, never in queries x keys.
    """
    row, low, high = slice_rows(slices, transpose=transpose)
    first = np.ones(len(row), bool)
    first[1:] = (row[1:] != row[:-1]) | (low[1:] != high[:-1])
    last = np.roll(first, -1)
    rows, columns = (keys, queries) if transpose else (queries, keys)
    return RowIntervals(row[first], low[first], high[last], rows, columns)


def slice_rows(
    slices: Sequence[tuple[int, int, int, int, str]], *, transpose: bool = False
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Row, low, high, int64, of the slices' non-empty rows, sorted by row, then low; nothing is joined."""
    table = np.array([piece[:4] for piece in slices], np.int64).reshape(-1, 4)
    q0, q1, k0, k1 = table.T
    types = np.array([piece[4] for piece in slices], str)
    right = np.where(np.isin(types, ("causal", "bi_causal")), k1 - q1, _UNBOUNDED)
    left = np.where(np.isin(types, ("inv_causal", "bi_causal")), k0 - q0, -_UNBOUNDED)
    if transpose:
        q0, q1, k0, k1, left, right = k0, k1, q0, q1, -right, -left
    count = q1 - q0
    owner = np.repeat(np.arange(len(slices)), count)
    row = np.arange(len(owner)) - np.repeat(np.cumsum(count) - count - q0, count)
    low = np.maximum(k0[owner], row + left[owner])
    high = np.minimum(k1[owner], row + right[owner] + 1)
    kept = low < high
    row, low, high = row[kept], low[kept], high[kept]
    # Most masks list their slices from top to bottom: then the rows stand in order already.
    if np.any((row[1:] < row[:-1]) | ((row[1:] == row[:-1]) & (low[1:] < low[:-1]))):
        order = np.lexsort((low, row))
        row, low, high = row[order], low[order], high[order]
    return row, low, high
