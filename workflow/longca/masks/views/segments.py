"""The segments view: one lowering of any mask for kernels that walk tiles.

Rows are cut into tiles (rows are queries; keys in the transposed form that a backward walks). For
each tile a segment is a run of columns, read in steps of `tile_columns`. The steps [whole_begin,
whole_end) of a run need no masking; in the others a row keeps the columns low <= c < high of its
own bounds. A row has at most one interval in a segment, so two compares mask any pattern. The size
grows with rows x intervals a row, never with rows x columns.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from longca.masks.intervals import row_intervals

SEGMENT_FIELDS = ("first", "steps", "whole_begin", "whole_end", "offset", "stride")
TILE_FIELDS = ("row_begin", "row_end", "segment_begin", "segment_end", "steps")
_FAR = 1 << 40


@dataclass(frozen=True)
class Segments:
    """One orientation of one mask.

    tiles int32 [T, 5]: row begin and end, the range of its segments, its steps over all segments.
    segments int32 [N, 6]: first column, steps, the range of whole steps (0, 0 where none is whole),
    then where its bounds stand: row r of the tile (0 <= r < row_end - row_begin) has low[offset + r
    * stride] and high[offset + r * stride], so stride 0 gives every row the same bounds. low, high
    int32 [B]: columns, half-open. Rows that keep nothing in a segment have low = high = 0.
    """

    tiles: np.ndarray
    segments: np.ndarray
    low: np.ndarray
    high: np.ndarray
    rows: int
    columns: int
    tile_rows: int
    tile_columns: int


def lower(
    slices: Sequence[tuple[int, int, int, int, str]],
    rows: int,
    columns: int,
    tile_rows: int,
    tile_columns: int,
    transpose: bool = False,
    align: int = 1,
) -> Segments:
    """Slices (q0, q1, k0, k1, type) as segments.

    `rows` and `columns` are those of the orientation: queries and keys, or keys and queries if `transpose`.
    A run starts at the first column any of its rows keeps, rounded down to a multiple of `align`.
    """
    queries, keys = (columns, rows) if transpose else (rows, columns)
    seen = row_intervals(slices, queries, keys, transpose=transpose)
    row, low, high = seen.row, seen.low, seen.high
    tile = row // tile_rows
    run = _runs(tile, low, high, tile_columns)
    # Within a run a row's n-th interval goes to the run's n-th segment.
    order = np.lexsort((low, run, row))
    row, low, high, run = row[order], low[order], high[order], run[order]
    start = np.ones(len(row), bool)
    start[1:] = (row[1:] != row[:-1]) | (run[1:] != run[:-1])
    position = np.arange(len(row))
    rank = position - np.maximum.accumulate(np.where(start, position, 0))
    order = np.lexsort((row, rank, run))
    row, low, high, run, rank = (x[order] for x in (row, low, high, run, rank))

    start = np.ones(len(row), bool)
    start[1:] = (run[1:] != run[:-1]) | (rank[1:] != rank[:-1])
    at = np.flatnonzero(start)
    tile = row[at] // tile_rows
    tiles = -(-rows // tile_rows)
    row_begin = np.arange(tiles) * tile_rows
    row_end = np.minimum(row_begin + tile_rows, rows)
    least, most = _reduce(np.minimum, low, at), _reduce(np.maximum, high, at)
    low_most, high_least = _reduce(np.maximum, low, at), _reduce(np.minimum, high, at)
    every_row = np.diff(np.append(at, len(row))) == (row_end - row_begin)[tile]

    begin = least // align * align
    steps = -(-(most - begin) // tile_columns)
    whole_begin = -(-(low_most - begin) // tile_columns)
    whole_end = (high_least - begin) // tile_columns
    # Rows past the last key would reach dQ through an unmasked step of the transposed form.
    some = (
        every_row & (whole_begin < whole_end) & ((row_end - row_begin == tile_rows)[tile] | (not transpose))
    )
    whole_begin, whole_end = np.where(some, whole_begin, 0), np.where(some, whole_end, 0)

    alike = every_row & (least == low_most) & (most == high_least)
    size = np.where(alike, 1, tile_rows)
    offset = np.cumsum(size) - size
    stride = np.where(alike, 0, 1)
    segment = np.cumsum(start) - 1
    place = offset[segment] + (row - row_begin[row // tile_rows]) * stride[segment]
    bounds = np.zeros((2, int(size.sum())), np.int32)
    bounds[0, place], bounds[1, place] = low, high

    fields = np.stack([begin, steps, whole_begin, whole_end, offset, stride], 1).astype(np.int32)
    first = np.searchsorted(tile, np.arange(tiles + 1))
    work = np.bincount(tile, steps, tiles).astype(np.int64)
    table = np.stack([row_begin, row_end, first[:-1], first[1:], work], 1).astype(np.int32)
    return Segments(table, fields, bounds[0], bounds[1], rows, columns, tile_rows, tile_columns)


def expand(segments: Segments) -> np.ndarray:
    """The mask a kernel applies when it follows the segments, bool [rows, columns]."""
    kept = np.zeros((segments.rows, segments.columns), bool)
    for row_begin, row_end, segment_begin, segment_end, _ in segments.tiles:
        lane = np.arange(row_end - row_begin)
        for first, steps, whole_begin, whole_end, offset, stride in segments.segments[
            segment_begin:segment_end
        ]:
            column = first + np.arange(steps * segments.tile_columns)
            low, high = (bound[offset + lane * stride, None] for bound in (segments.low, segments.high))
            step = np.arange(steps).repeat(segments.tile_columns)
            cells = ((column >= low) & (column < high)) | ((step >= whole_begin) & (step < whole_end))
            inside = column < segments.columns
            if cells[:, ~inside].any():
                raise IndexError(
                    f"a segment of rows {row_begin}:{row_end} keeps columns beyond {segments.columns}"
                )
            kept[row_begin:row_end, column[inside]] |= cells[:, inside]
    return kept


def _runs(tile: np.ndarray, low: np.ndarray, high: np.ndarray, gap: int) -> np.ndarray:
    """Numbers the runs: a tile's intervals share one unless `gap` or more unused columns lie between."""
    order = np.lexsort((low, tile))
    spread = np.int64(_FAR)  # one cumulative maximum serves all tiles when each stands beyond the one before
    reach = np.maximum.accumulate(high[order] + tile[order] * spread)
    new = np.ones(len(order), bool)
    new[1:] = low[order][1:] + tile[order][1:] * spread >= reach[:-1] + gap
    run = np.empty(len(order), np.int64)
    run[order] = np.cumsum(new)
    return run


def _reduce(combine: np.ufunc, values: np.ndarray, at: np.ndarray) -> np.ndarray:
    return combine.reduceat(values, at) if len(at) else values[:0]
