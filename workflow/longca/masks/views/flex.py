"""The flex view: the blocks FlexAttention walks, and what masks the partial ones.

A block is full where all its cells are kept, partial where only some are; cells beyond the last query or key
count as not kept, as in torch's own create_block_mask. Everything comes from the slices, in time and memory
linear in the queries' intervals and the non-empty blocks.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from longca.masks.blocks.block_map import BlockMap
from longca.masks.slices import Slice, row_intervals
from longca.masks.views.block_grid import Blocks, find_blocks


@dataclass(frozen=True)
class Flex:
    """The block structure of a mask, and its row bounds.

    partial, full: blocks by query block row. low, high: int32 [layers, queries]; query i keeps key j where
    low[n, i] <= j < high[n, i] in one of the few layers; 0 and 0 is no interval.
    """

    partial: Blocks
    full: Blocks
    low: np.ndarray
    high: np.ndarray
    queries: int
    keys: int
    block: int


def lower(slices: Sequence[Slice], queries: int, keys: int, block: int = 128) -> Flex:
    """Blocks of `block` x `block` cells, and row bounds."""
    intervals = row_intervals(slices, queries, keys)
    row, rank = intervals.row // block, intervals.rank
    low, high = intervals.low, intervals.high
    if rank.any():
        order = np.lexsort((rank, row))
        row, rank, low, high = row[order], rank[order], low[order], high[order]
    # Neighbouring rows mostly touch and fill the same blocks: each run of such rows is one weighted interval.
    alike = [row, rank, low // block, -(-low // block), high // block, -(-high // block)]
    new = np.ones(len(row), bool)
    new[1:] = np.any([values[1:] != values[:-1] for values in alike], axis=0)
    at = np.flatnonzero(new)
    weight = np.diff(np.append(at, len(row)))
    grid = -(-queries // block), -(-keys // block)
    partial, full = find_blocks(row[at], low[at], high[at], weight, block, *grid)
    bounds_low, bounds_high = (bounds.astype(np.int32) for bounds in intervals.layers())
    return Flex(partial, full, bounds_low, bounds_high, queries, keys, block)


def lower_head(block_map: BlockMap, head: int, block: int) -> tuple[Blocks, Blocks]:
    """Partial and full blocks of one KV head of a block map, in a grid of `block` x `block` cells."""
    stop = np.cumsum(block_map.row_sizes[head])
    grid = -(-block_map.seqlen // block)
    # Between the edges of map rows and grid rows all queries keep the same keys.
    edges = np.union1d(np.append(0, stop), np.minimum(np.arange(grid + 1) * block, block_map.seqlen))
    map_row = np.searchsorted(stop, edges[:-1], side="right")
    run_row, first, end = block_map.runs(head)
    begin = np.searchsorted(run_row, np.arange(len(stop) + 1))
    count = np.diff(begin)[map_row]
    run = np.repeat(begin[map_row] - np.cumsum(count) + count, count) + np.arange(count.sum())
    row, weight = (np.repeat(values, count) for values in (edges[:-1] // block, np.diff(edges)))
    return find_blocks(row, first[run], end[run], weight, block, grid, grid)


def expand(view: Flex) -> np.ndarray:
    """The cells a kernel keeps that follows blocks and bounds, bool [queries, keys]."""
    kept = np.zeros((view.queries, view.keys), bool)
    for blocks, whole in ((view.partial, False), (view.full, True)):
        for row, column in zip(blocks.rows, blocks.columns, strict=True):
            i = slice(row * view.block, min((row + 1) * view.block, view.queries))
            j = np.arange(column * view.block, min((column + 1) * view.block, view.keys))
            inside = (j >= view.low[:, i, None]) & (j < view.high[:, i, None])
            kept[i, j[0] : j[-1] + 1] = whole | inside.any(0)
    return kept
