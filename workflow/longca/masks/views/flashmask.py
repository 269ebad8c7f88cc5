"""The FlashMask view: for each key, the queries that do not see it.

Source: FlashMask (arXiv 2410.01359), section 4.1. Key j is hidden from the queries [LTS[j], LTE[j]) in the
lower triangle (i >= j) and from [UTS[j], UTE[j]) in the upper one (i < j): memory is linear in the keys.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from longca.masks.slices import RowIntervals, Slice, row_intervals
from longca.masks.views.unavailable import ViewUnavailable


@dataclass(frozen=True)
class FlashMask:
    """int32 [keys] each: first and end query hidden below the diagonal, first and end query hidden above it.

    Where nothing is hidden, lower is [queries, queries) and upper is [0, 0). causal: every query i < j is
    hidden from key j, so that a kernel with a causal switch needs the lower columns only.
    """

    lts: np.ndarray
    lte: np.ndarray
    uts: np.ndarray
    ute: np.ndarray
    causal: bool
    queries: int
    keys: int


def lower(slices: Sequence[Slice], queries: int, keys: int) -> FlashMask:
    """The columns that hide exactly the cells the slices do not keep.

    Raises:
        ViewUnavailable: where a key is hidden from two runs of queries on one side of the diagonal.
    """
    key, start, end = _gaps(row_intervals(slices, queries, keys, transpose=True))
    below = np.maximum(start, key), end
    above = start, np.minimum(end, key)
    columns = np.empty((4, keys), np.int32)
    columns[:2], columns[2:] = queries, 0
    for side, at, (first, stop) in (("below", 0, below), ("above", 2, above)):
        some = first < stop
        owner = key[some]
        twice = owner[1:] == owner[:-1]
        if twice.any():
            raise ViewUnavailable(
                f"flashmask: key {owner[1:][twice][0]} is hidden from two runs of queries {side} the diagonal"
            )
        columns[at, owner], columns[at + 1, owner] = first[some], stop[some]
    above_diagonal = np.minimum(np.arange(keys), queries)
    causal = bool(np.all((columns[2] == 0) & (columns[3] == above_diagonal)))
    return FlashMask(columns[0], columns[1], columns[2], columns[3], causal, queries, keys)


def expand(view: FlashMask) -> np.ndarray:
    """The kept cells, bool [queries, keys]."""
    i = np.arange(view.queries)[:, None]
    hidden_below = (i >= view.lts) & (i < view.lte)
    hidden_above = (i >= view.uts) & (i < view.ute)
    return ~(hidden_below | hidden_above)


def _gaps(seen: RowIntervals) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Key, start and end of every run of queries that does not see the key, sorted by key."""
    # A gap opens at the first query and wherever an interval ends; it closes where the next begins, or at the
    # last query.
    every = np.arange(seen.rows)
    key = np.concatenate([every, seen.row])
    start = np.concatenate([np.zeros_like(every), seen.high])
    order = np.lexsort((start, key))
    key, start = key[order], start[order]
    close = np.concatenate([seen.low, np.full_like(every, seen.columns)])
    end = close[np.lexsort((close, np.concatenate([seen.row, every])))]
    some = start < end
    return key[some], start[some], end[some]
