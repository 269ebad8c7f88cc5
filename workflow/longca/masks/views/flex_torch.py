"""torch's BlockMask from the flex view, without create_block_mask and its queries x keys arrays.

One mask_mod serves all masks, so that compiled kernels are shared between patterns: only shapes, and the
number of intervals a query keeps, are part of the code.
"""

from collections.abc import Callable, Sequence

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

# Index rows are stored in steps of this many blocks. Strides are part of compiled code; so they do not depend
# on the mask up to 65536 tokens in blocks of 128, where every row fits in one step.
_ROW_STEP = 512


def block_mask(
    slices: Sequence[Slice], queries: int, keys: int, block: int = 128, device: Device = "cpu"
) -> BlockMask:
    """The BlockMask [1, 1, queries, keys] of a mask, both orientations filled in, on `device`."""
    view = flex.lower(slices, queries, keys, block)
    try:
        keep = _keep_window(window.lower(slices, queries, keys), device)
    except ViewUnavailable:
        keep = _keep_intervals(view, device)
    return _assemble([(view.partial, view.full)], (queries, keys), block, keep, device)


def map_block_mask(block_map: BlockMap, q_heads: int, device: Device = "cpu") -> BlockMask:
    """The BlockMask [1, q_heads, seqlen, seqlen] of a block map; the query heads of a group share a KV
    head's.

    Uniform maps keep their own blocks as the grid, all full but for a cut last one. Variable ones are laid
    over a grid of 128, whose partial blocks look up the map.
    """
    block = block_map.block if block_map.pattern == "uniform_block" else 128
    group = q_heads // block_map.kv_heads
    heads = [flex.lower_head(block_map, head, block) for head in range(block_map.kv_heads)]
    shared = [heads[head // group] for head in range(q_heads)]
    lengths = (block_map.seqlen, block_map.seqlen)
    return _assemble(shared, lengths, block, _keep_map(block_map, group, device), device)


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
    lengths: tuple[int, int],
    block: int,
    keep: MaskMod,
    device: Device,
) -> BlockMask:
    """A BlockMask of (partial, full) blocks a head. Both are given even if empty: absence is other code."""
    rows, columns = (-(-length // block) for length in lengths)
    partial, full = zip(*heads, strict=True)
    kv_num, kv_indices = _ordered(partial, columns, device)
    full_kv_num, full_kv_indices = _ordered(full, columns, device)
    q_num, q_indices = _ordered([blocks.transposed(columns) for blocks in partial], rows, device)
    full_q_num, full_q_indices = _ordered([blocks.transposed(columns) for blocks in full], rows, device)
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


def _ordered(heads: Sequence[Blocks], columns: int, device: Device) -> tuple[torch.Tensor, torch.Tensor]:
    """Counts int32 [1, heads, rows] and indices int32 [1, heads, rows, columns] of blocks, row by row.

    torch wants index rows as long as the grid, though it reads no more than a row's count. Where that would
    be long, rows are stored as long as the widest asks for and overlap: the unread rest of a row lies over
    the rows after it. Such a tensor must be made on its device, as a copy would be contiguous, hence in full.
    """
    counts = np.stack([blocks.counts for blocks in heads])
    rows = counts.shape[1]
    widest = max(1, int(counts.max(initial=0)))
    stored = min(columns, -(-widest // _ROW_STEP) * _ROW_STEP)
    used = len(heads) * rows * stored
    indices = np.zeros(used + columns - stored, np.int32)
    for table, blocks in zip(indices[:used].reshape(-1, rows, stored), heads, strict=True):
        table[np.arange(stored) < blocks.counts[:, None]] = blocks.columns
    stride = (used, rows * stored, stored, 1)
    return (
        torch.from_numpy(counts.astype(np.int32))[None].to(device),
        torch.from_numpy(indices).to(device).as_strided((1, len(heads), rows, columns), stride),
    )
