"""Which blocks of a grid a mask touches, and which it fills; linear in the non-empty ones."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Blocks:
    """Some blocks of a grid, row by row: row r holds columns[starts[r] : starts[r + 1]], ascending.

    starts: int64 [rows + 1]; columns: int32 [blocks].
    """

    starts: np.ndarray
    columns: np.ndarray

    @property
    def counts(self) -> np.ndarray:
        """Blocks in each row, int64 [rows]."""
        return np.diff(self.starts)

    @property
    def rows(self) -> np.ndarray:
        """The row of each block, int32 [blocks]."""
        return np.repeat(np.arange(len(self.starts) - 1, dtype=np.int32), self.counts)


def find_blocks(
    row: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    weight: np.ndarray,
    block: int,
    rows: int,
    columns: int,
) -> tuple[Blocks, Blocks]:
    """Partial and full blocks of a grid of `rows` x `columns` blocks of `block` x `block` cells.

    row, low, high, weight: int64 [intervals], sorted by row: `weight` mask rows inside block row `row` keep
    the columns low <= c < high. A mask row's own intervals neither overlap nor touch. A block is full where
    `block` rows keep all its columns, partial where any row keeps some but it is not full.
    """
    touch_first, touch_end = low // block, -(-high // block)
    fill_first = -(-low // block)
    fill_end = np.maximum(high // block, fill_first)
    # A sweep over the ends of what intervals touch and fill counts both; between two ends the counts stand.
    width = columns + 1
    place = np.concatenate([row * width + end for end in (touch_first, touch_end, fill_first, fill_end)])
    none = np.zeros_like(weight)
    order = np.argsort(place)
    touched = np.cumsum(np.concatenate([weight, -weight, none, none])[order])[:-1]
    filled = np.cumsum(np.concatenate([none, none, weight, -weight])[order])[:-1]
    place = place[order]
    length = np.diff(place)
    full = (length > 0) & (filled == block)
    partial = (length > 0) & (touched > 0) & ~full
    return (
        _unroll(place[:-1][partial], length[partial], rows, width),
        _unroll(place[:-1][full], length[full], rows, width),
    )


def _unroll(place: np.ndarray, length: np.ndarray, rows: int, width: int) -> Blocks:
    """Runs of `length` blocks that begin at `place` = row * width + column, block by block."""
    counts = np.bincount(place // width, length, rows).astype(np.int64)
    columns = np.repeat((place % width - np.cumsum(length) + length).astype(np.int32), length)
    columns += np.arange(len(columns), dtype=np.int32)
    return Blocks(np.append(0, np.cumsum(counts)), columns)
