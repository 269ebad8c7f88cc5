"""The window view: a sliding window over the whole sequence, as flash-attention takes it.

Convention of flash-attention's `window_size`: with offset = keys - queries (aligned at the bottom right),
query i sees the keys i + offset - left <= j <= i + offset + right; -1 is no bound.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from longca.masks.slices import Slice, row_intervals
from longca.masks.views.unavailable import ViewUnavailable


@dataclass(frozen=True)
class Window:
    """left and right are inclusive distances, -1 for no bound; causal says that no query sees past itself."""

    left: int
    right: int
    causal: bool
    queries: int
    keys: int


def lower(slices: Sequence[Slice], queries: int, keys: int) -> Window:
    """The window that keeps exactly these cells.

    Raises:
        ViewUnavailable: where no window does.
    """
    intervals = row_intervals(slices, queries, keys)
    if not len(intervals.row):
        raise ViewUnavailable("window: no query sees any key")
    if intervals.rank.any():
        row = intervals.row[intervals.rank > 0][0]
        raise ViewUnavailable(f"window: query {row} sees more than one run of keys")
    diagonal = intervals.row + keys - queries
    # A row whose interval starts at the first key, or ends at the last, does not show where the bound is.
    left = (diagonal - intervals.low)[intervals.low > 0]
    right = (intervals.high - 1 - diagonal)[intervals.high < keys]
    window = Window(
        left=int(left[0]) if len(left) else -1,
        right=int(right[0]) if len(right) else -1,
        causal=bool(len(right)) and int(right[0]) == 0,
        queries=queries,
        keys=keys,
    )
    if (len(left) and left[0] < 0) or (len(right) and right[0] < 0):
        raise ViewUnavailable("window: does not reach the diagonal")
    low, high = _bounds(window)
    found_low, found_high = (bounds[0] for bounds in intervals.layers())
    wrong = np.flatnonzero((low != found_low) | (high != found_high))
    if len(wrong):
        raise ViewUnavailable(f"window: query {wrong[0]} has another window than the queries before it")
    return window


def expand(view: Window) -> np.ndarray:
    """The kept cells, bool [queries, keys]."""
    low, high = _bounds(view)
    j = np.arange(view.keys)
    return (j >= low[:, None]) & (j < high[:, None])


def _bounds(view: Window) -> tuple[np.ndarray, np.ndarray]:
    """The keys [low, high) each query keeps, 0 and 0 where none."""
    diagonal = np.arange(view.queries) + view.keys - view.queries
    low = np.maximum(diagonal - view.left, 0) if view.left >= 0 else np.zeros_like(diagonal)
    high = (
        np.minimum(diagonal + view.right + 1, view.keys)
        if view.right >= 0
        else np.full_like(diagonal, view.keys)
    )
    empty = low >= high
    return np.where(empty, 0, low), np.where(empty, 0, high)
