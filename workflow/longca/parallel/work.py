"""A rank's work: the mask restricted to its queries and the keys in hand, in rows of its tensors."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence

import numpy as np

from longca.masks.slices import Slice, restrict, row_intervals
from longca.parallel.shards import Shard


def local_slices(slices: Iterable[Slice], queries: Shard, keys: Shard, key_offset: int = 0) -> list[Slice]:
    """The part of a mask between the tokens of two shards, in rows of these shards.

    Rows of keys count from `key_offset`. Padding is in no slice, so it is never attended to. Each slice meets
    only the pieces it overlaps: the time grows with what is kept, not with pieces x pieces x slices.
    """
    inside = []
    for piece in slices:
        for row, top, bottom in _overlapping(queries, piece.q0, piece.q1):
            for column, first, last in _overlapping(keys, piece.k0, piece.k1):
                column += key_offset
                for q0, q1, k0, k1, kind in restrict([piece], top, bottom, first, last):
                    inside.append(Slice(row + q0, row + q1, column + k0, column + k1, kind))
    return inside


def row_areas(slices: Sequence[Slice], seqlen: int) -> np.ndarray:
    """Cells each query keeps, int64 [seqlen]."""
    kept = row_intervals(slices, seqlen, seqlen)
    areas = np.zeros(seqlen, np.int64)
    np.add.at(areas, kept.row, kept.high - kept.low)
    return areas


def shard_areas(slices: Sequence[Slice], seqlen: int, shards: Sequence[Shard]) -> list[int]:
    """Cells the queries of each shard keep."""
    below = np.concatenate([[0], np.cumsum(row_areas(slices, seqlen))])
    return [sum(int(below[piece.end] - below[piece.begin]) for piece in shard.pieces) for shard in shards]


def imbalance(slices: Sequence[Slice], seqlen: int, shards: Sequence[Shard]) -> float:
    """Greatest over mean area of the shards; 1 where the mask keeps nothing."""
    areas = shard_areas(slices, seqlen, shards)
    return max(areas) * len(areas) / sum(areas) if sum(areas) else 1.0


def _overlapping(shard: Shard, begin: int, end: int) -> Iterable[tuple[int, int, int]]:
    """(first row, first token, end token) of each piece's tokens inside [begin, end)."""
    first = bisect_right(shard.pieces, begin, key=lambda piece: piece.end)
    last = bisect_left(shard.pieces, end, key=lambda piece: piece.begin)
    for index in range(first, last):
        piece, offset = shard.pieces[index], shard.offsets[index]
        top, bottom = max(begin, piece.begin), min(end, piece.end)
        if top < bottom:
            yield offset + top - piece.begin, top, bottom
