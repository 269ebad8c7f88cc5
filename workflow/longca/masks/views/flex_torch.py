"""torch's BlockMask from the flex view, without create_block_mask and its queries x keys arrays.

One mask_mod serves all masks, so that compiled kernels are shared between patterns: only shapes, and the
number of intervals a query keeps, are part of the code.
"""

import math
import mmap
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import torch
from torch.nn.attention.flex_attention import BlockMask

from longca.masks.blocks.block_map import BlockMap
from longca.masks.slices import Slice
from longca.masks.views import flex, window
from longca.masks.views.block_grid import Blocks
from longca.masks.views.unavailable import ViewUnavailable

Device = torch.device | str
MaskMod = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor]

# Blocks are transposed so many block rows at a time: what that takes stays small beside the result.
_ROWS_AT_ONCE = 256


def block_mask(
    slices: Sequence[Slice], queries: int, keys: int, block: int = 128, device: Device = "cpu"
) -> BlockMask:
    """The BlockMask [1, 1, queries, keys] of a mask, both orientations filled in, on `device`."""
    view = flex.lower(slices, queries, keys, block)
    try:
        keep = _keep_window(window.lower(slices, queries, keys), device)
    except ViewUnavailable:
        keep = _keep_intervals(view, device)
    return _assemble([(view.partial, view.full)], 1, (queries, keys), block, keep, device)


def map_block_mask(block_map: BlockMap, q_heads: int, device: Device = "cpu") -> BlockMask:
    """The BlockMask [1, q_heads, seqlen, seqlen] of a block map, a KV head's for all query heads of its group.

    Uniform maps keep their own blocks as the grid, all full but for a cut last one. Variable ones are laid
    over a grid of 128, whose partial blocks look up the map. q_heads is a multiple of the map's KV heads.
    """
    block = block_map.block if block_map.pattern == "uniform_block" else 128
    group = q_heads // block_map.kv_heads
    heads = [flex.lower_head(block_map, head, block) for head in range(block_map.kv_heads)]
    lengths = (block_map.seqlen, block_map.seqlen)
    return _assemble(heads, group, lengths, block, _keep_map(block_map, group, device), device)


def _keep_window(view: window.Window, device: Device) -> MaskMod:
    """Full, causal and the sliding windows need no lookup; their bounds are data, so code is shared."""
    offset = view.keys - view.queries
    least = offset - view.left if view.left >= 0 else -view.queries
    most = offset + view.right if view.right >= 0 else view.keys
    left, right = (torch.tensor(bound, dtype=torch.int32, device=device) for bound in (least, most))

    def keep(b: torch.Tensor, h: torch.Tensor, q_idx: torch.Tensor, kv_idx: torch.Tensor) -> torch.Tensor:
        return (kv_idx >= q_idx + left) & (kv_idx <= q_idx + right)

    return keep


def _keep_intervals(view: flex.Flex, device: Device) -> MaskMod:
    """Two compares an interval; one tensor a layer, as torch packs bounds that are plain loads by query."""
    low, high = (torch.from_numpy(bounds).to(device).unbind() for bounds in (view.low, view.high))

    def keep(b: torch.Tensor, h: torch.Tensor, q_idx: torch.Tensor, kv_idx: torch.Tensor) -> torch.Tensor:
        kept = (kv_idx >= low[0][q_idx]) & (kv_idx < high[0][q_idx])
        for first, end in zip(low[1:], high[1:], strict=True):
            kept = kept | ((kv_idx >= first[q_idx]) & (kv_idx < end[q_idx]))
        return kept

    return keep


def _keep_map(block_map: BlockMap, group: int, device: Device) -> MaskMod:
    """Looks up the map's block of the cell."""

    def owners(sizes: np.ndarray) -> torch.Tensor:
        numbers = [np.repeat(np.arange(len(head), dtype=np.int32), head) for head in sizes]
        return torch.from_numpy(np.stack(numbers)).to(device)

    row, column = owners(block_map.row_sizes), owners(block_map.column_sizes)
    kept = torch.from_numpy(block_map.kept).to(device)

    def keep(b: torch.Tensor, h: torch.Tensor, q_idx: torch.Tensor, kv_idx: torch.Tensor) -> torch.Tensor:
        head = h // group
        return kept[head, row[head, q_idx], column[head, kv_idx]]

    return keep


def _assemble(
    heads: Sequence[tuple[Blocks, Blocks]],
    group: int,
    lengths: tuple[int, int],
    block: int,
    keep: MaskMod,
    device: Device,
) -> BlockMask:
    """A BlockMask of (partial, full) blocks, each for `group` heads. Empty ones too: absence is other code."""
    rows, columns = (-(-length // block) for length in lengths)
    partial, full = zip(*heads, strict=True)
    kv_num, kv_indices = _by_row(partial, group, columns, device)
    full_kv_num, full_kv_indices = _by_row(full, group, columns, device)
    q_num, q_indices = _by_column(partial, group, rows, columns, device)
    full_q_num, full_q_indices = _by_column(full, group, rows, columns, device)
    return BlockMask(
        seq_lengths=lengths,
        kv_num_blocks=kv_num,
        kv_indices=kv_indices,
        full_kv_num_blocks=full_kv_num,
        full_kv_indices=full_kv_indices,
        q_num_blocks=q_num,
        q_indices=q_indices,
        full_q_num_blocks=full_q_num,
        full_q_indices=full_q_indices,
        BLOCK_SIZE=(block, block),
        mask_mod=keep,
    )


def _by_row(
    heads: Sequence[Blocks], group: int, columns: int, device: Device
) -> tuple[torch.Tensor, torch.Tensor]:
    """torch's counts and indices of the blocks in each row."""

    def fill(table: np.ndarray, blocks: Blocks) -> None:
        for line, (start, end) in zip(table, pairwise(blocks.starts), strict=True):
            line[: end - start] = blocks.columns[start:end]

    return _ordered(heads, [blocks.counts for blocks in heads], fill, group, columns, device)


def _by_column(
    heads: Sequence[Blocks], group: int, rows: int, columns: int, device: Device
) -> tuple[torch.Tensor, torch.Tensor]:
    """torch's counts and indices of the blocks in each column."""

    def fill(table: np.ndarray, blocks: Blocks) -> None:
        filled = np.zeros(columns, np.int64)
        for row in range(0, len(blocks.counts), _ROWS_AT_ONCE):
            count = blocks.counts[row : row + _ROWS_AT_ONCE]
            start = blocks.starts[row]
            some = blocks.columns[start : start + count.sum()]
            # 16 bits are sorted by radix, in linear time.
            order = np.argsort(some.astype(np.uint16 if columns <= 1 << 16 else np.int32), kind="stable")
            more = np.bincount(some, minlength=columns)
            place = np.arange(len(some)) + np.repeat(filled - np.cumsum(more) + more, more)
            table[some[order], place] = np.repeat(np.arange(row, row + len(count)), count)[order]
            filled += more

    counts = [np.bincount(blocks.columns, minlength=columns) for blocks in heads]
    return _ordered(heads, counts, fill, group, rows, device)


def _ordered(
    heads: Sequence[Blocks],
    counts: Sequence[np.ndarray],
    fill: Callable[[np.ndarray, Blocks], None],
    group: int,
    width: int,
    device: Device,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Counts int32 [1, heads, lines] and indices int32 [1, heads, lines, width]; `fill` writes a head's lines."""
    table = np.repeat(np.stack(counts).astype(np.int32), group, axis=0)
    shape = (len(heads), group, table.shape[1], width)
    indices = _lazy_zeros(math.prod(shape)).reshape(shape)
    for shared, blocks in zip(indices, heads, strict=True):
        fill(shared[0], blocks)
        shared[1:] = shared[0]
    return (
        torch.from_numpy(table)[None].to(device),
        torch.from_numpy(indices.reshape(1, *table.shape, width)).to(device),
    )


def _lazy_zeros(size: int) -> np.ndarray:
    """int32 zeros that take memory page by page, where they are written.

    torch wants lines of indices as long as the grid is wide but reads no more of one than its count: at 524288
    tokens most pages stay untouched. (On a GPU they are all there. Strides of shorter lines would be part of
    compiled code, and torch 2.11 reads full blocks with the strides of partial ones.)
    """
    pages = mmap.mmap(-1, 4 * size)
    if hasattr(mmap, "MADV_NOHUGEPAGE"):
        pages.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(pages, np.int32)
