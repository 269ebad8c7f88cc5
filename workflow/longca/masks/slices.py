"""The slice algebra: a mask is a list of slices, of which no two share a kept cell.

i is the query, j the key; ranges are half-open. With lq = q1 - q0, lk = k1 - k0, r = i - q0, c = j - k0 a
slice keeps, by its type,
    full        every cell
    causal      c <= r + (lk - lq)             aligned at the bottom right
    inv_causal  c >= r                         aligned at the top left
    bi_causal   r <= c <= r + (lk - lq)        aligned at both
A row may keep nothing: its output is 0, its lse -inf, its gradient 0.
"""

import hashlib
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from longca.errors import LongcaError
from longca.masks.intervals import RowIntervals, row_intervals, slice_rows

__all__ = [
    "TYPES",
    "RowIntervals",
    "Slice",
    "area",
    "band",
    "restrict",
    "row_bounds",
    "row_intervals",
    "slice_area",
    "slices_digest",
    "validate_slices",
]

TYPES = ("full", "causal", "inv_causal", "bi_causal")
_ROWS_AT_ONCE = 1 << 22


class Slice(NamedTuple):
    """Queries [q0, q1) against keys [k0, k1), kept as `type` says."""

    q0: int
    q1: int
    k0: int
    k1: int
    type: str


def slice_area(piece: Slice) -> int:
    """Cells the slice keeps."""
    queries, keys = piece.q1 - piece.q0, piece.k1 - piece.k0
    if piece.type == "full":
        return queries * keys
    if piece.type == "bi_causal":
        return queries * (keys - queries + 1) if keys >= queries else 0
    height = min(queries, keys)
    return (2 * keys - height + 1) * height // 2


def area(slices: Iterable[Slice]) -> int:
    """Cells a mask keeps: slices share none, so their areas add up."""
    return sum(slice_area(piece) for piece in slices)


def row_bounds(piece: Slice) -> tuple[int | None, int | None]:
    """(left, right) such that, inside the slice's ranges, key j is kept by query i where i + left <= j <= i +
    right.

    None is no bound.
    """
    left = piece.k0 - piece.q0 if piece.type in ("inv_causal", "bi_causal") else None
    right = piece.k1 - piece.q1 if piece.type in ("causal", "bi_causal") else None
    return left, right


def band(q0: int, q1: int, k0: int, k1: int, left: int | None, right: int | None) -> list[Slice]:
    """Slices that keep i + left <= j <= i + right of queries [q0, q1) and keys [k0, k1), as few as it takes.

    None is no bound. Every slice's rows keep something. At most three slices.
    """
    left = k0 - q1 if left is None else left
    right = k1 - q0 if right is None else right
    # Above the first row whose right bound reaches k0, and below the last whose left bound does not pass k1:
    # nothing.
    q0, q1 = max(q0, k0 - right), min(q1, k1 - left)
    if q0 >= q1 or k0 >= k1 or left > right:
        return []
    # The left bound matters below row k0 - left, the right one above row k1 - right.
    cuts = sorted({q0, q1, min(max(k0 - left, q0), q1), min(max(k1 - right, q0), q1)})
    slices = []
    for top, bottom in pairwise(cuts):
        bounded_left, bounded_right = top >= k0 - left, bottom <= k1 - right
        slices.append(
            Slice(
                top,
                bottom,
                top + left if bounded_left else k0,
                bottom + right if bounded_right else k1,
                TYPES[2 * bounded_left + bounded_right],
            )
        )
    return slices


def restrict(slices: Iterable[Slice], q0: int, q1: int, k0: int, k1: int) -> list[Slice]:
    """The part of a mask inside queries [q0, q1) and keys [k0, k1), as a mask of its own.

    The result counts queries from q0 and keys from k0: it is what a rank needs for its queries and the keys
    in hand.
    """
    inside = []
    for piece in slices:
        top, bottom = max(q0, piece.q0), min(q1, piece.q1)
        first, end = max(k0, piece.k0), min(k1, piece.k1)
        for part in band(top, bottom, first, end, *row_bounds(piece)):
            inside.append(Slice(part.q0 - q0, part.q1 - q0, part.k0 - k0, part.k1 - k0, part.type))
    return inside


def validate_slices(slices: Sequence[Slice], queries: int, keys: int) -> None:
    """Refuse slices that leave the mask, have no such type, or share a kept cell.

    Exact, in time linear in the rows of the slices; those of a mask above four million rows go in parts.

    Raises:
        LongcaError: naming the first offending slice.
    """
    for number, piece in enumerate(slices):
        if piece.type not in TYPES:
            raise LongcaError(
                f"slice {number} {list(piece)}: type {piece.type!r} is none of {', '.join(TYPES)}"
            )
        if not (0 <= piece.q0 <= piece.q1 <= queries and 0 <= piece.k0 <= piece.k1 <= keys):
            raise LongcaError(
                f"slice {number} {list(piece)}: must be ranges inside {queries} queries x {keys} keys"
            )
    rows = sum(piece.q1 - piece.q0 for piece in slices)
    step = max(1, min(queries, queries * _ROWS_AT_ONCE // max(1, rows)))
    for start in range(0, queries, step):
        row, low, high = slice_rows(restrict(slices, start, min(start + step, queries), 0, keys))
        clash = np.flatnonzero((row[1:] == row[:-1]) & (low[1:] < high[:-1]))
        if len(clash):
            at = clash[0] + 1
            raise LongcaError(
                f"two slices both keep query {start + row[at]}, key {low[at]}; a cell is kept once"
            )


def slices_digest(slices: Sequence[Slice], queries: int, keys: int) -> str:
    """sha256 (hex) of the kept cells: equal for equal masks, however they are cut into slices."""
    kept = row_intervals(slices, queries, keys)
    digest = hashlib.sha256(f"{queries} {keys}\n".encode())
    for values in (kept.row, kept.low, kept.high):
        digest.update(values.astype("<i8").tobytes())
    return digest.hexdigest()
