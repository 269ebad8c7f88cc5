"""The varlen view: packed sequences that do not see each other, as variable-length kernels take them.

Sequence n has the queries [cu_seqlens_q[n], cu_seqlens_q[n + 1]) and the keys [cu_seqlens_k[n],
cu_seqlens_k[n + 1]); it is seen in full, or causally, aligned at the bottom right. All sequences are of one
kind.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from longca.masks.slices import Slice, row_intervals
from longca.masks.views.unavailable import ViewUnavailable


@dataclass(frozen=True)
class Varlen:
    """Cumulative lengths int32 [sequences + 1], from 0 to queries and to keys; causal is of all sequences."""

    cu_seqlens_q: np.ndarray
    cu_seqlens_k: np.ndarray
    causal: bool
    queries: int
    keys: int


def lower(slices: Sequence[Slice], queries: int, keys: int) -> Varlen:
    """The packed sequences that keep exactly these cells.

    A mask that is both (every query sees one key) counts as full. Queries that see nothing are sequences
    without keys, keys that nobody sees sequences without queries.

    Raises:
        ViewUnavailable: where no packed sequences do.
    """
    intervals = row_intervals(slices, queries, keys)
    if intervals.rank.any():
        row = intervals.row[intervals.rank > 0][0]
        raise ViewUnavailable(f"varlen: query {row} sees more than one run of keys")
    low, high = (bounds[0] for bounds in intervals.layers())
    row = np.arange(queries)
    same_low = low[1:] == low[:-1]
    for causal in (False, True):
        # The key just past the last one a query sees, counted as the sequence's last query would see it.
        end = high - row if causal else high
        starts = np.append(0, 1 + np.flatnonzero(~(same_low & (end[1:] == end[:-1]))))
        view = _sequences(starts, low, high, causal, keys)
        if view is not None:
            return view
    raise ViewUnavailable(
        "varlen: the queries do not fall into sequences, all full or all causal, with keys of their own"
    )


def expand(view: Varlen) -> np.ndarray:
    """The kept cells, bool [queries, keys]."""
    kept = np.zeros((view.queries, view.keys), bool)
    for q0, q1, k0, k1 in zip(
        view.cu_seqlens_q, view.cu_seqlens_q[1:], view.cu_seqlens_k, view.cu_seqlens_k[1:], strict=False
    ):
        i, j = np.arange(q1 - q0)[:, None], np.arange(k1 - k0)
        kept[q0:q1, k0:k1] = (j <= i + (k1 - k0) - (q1 - q0)) if view.causal else True
    return kept


def _sequences(
    starts: np.ndarray, low: np.ndarray, high: np.ndarray, causal: bool, keys: int
) -> Varlen | None:
    """Sequences of the query runs that begin at `starts`; None where their keys overlap or go backwards."""
    queries = len(low)
    stops = np.append(starts[1:], queries)
    cu_seqlens_q, cu_seqlens_k = [0], [0]
    for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
        first, end = int(low[start]), int(high[stop - 1])
        if first < end:
            if first < cu_seqlens_k[-1]:
                return None
            if first > cu_seqlens_k[-1]:
                cu_seqlens_q.append(start)
                cu_seqlens_k.append(first)
        cu_seqlens_q.append(stop)
        cu_seqlens_k.append(max(end, cu_seqlens_k[-1]))
    if cu_seqlens_k[-1] < keys:
        cu_seqlens_q.append(queries)
        cu_seqlens_k.append(keys)
    return Varlen(np.array(cu_seqlens_q, np.int32), np.array(cu_seqlens_k, np.int32), causal, queries, keys)
