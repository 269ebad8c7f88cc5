"""The lists that block-sparse kernels walk: for each row of blocks the kept ones, made on the device."""

import torch

from longca.masks.blocks.block_map import BlockMap

# Sorting needs 9 bytes a block: done for so many at a time, a long map of many heads takes no more than it must.
_BLOCKS_AT_ONCE = 1 << 27


def block_lists(
    block_map: BlockMap,
    q_heads: int,
    device: torch.device | str,
    transpose: bool = False,
    compact: bool = True,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Counts int32 [q_heads, rows] and kept blocks int32 [q_heads, rows, width], ascending, of each row of blocks.

    `transpose`: for each column of blocks the rows that keep it. A KV head's lists stand for all query heads of its
    group. What stands behind a row's count is other blocks of the row; `compact` makes the lists as wide as the
    longest needs (1 at least), else they are as wide as the map.
    """
    kept = torch.from_numpy(block_map.kept).to(device)
    if transpose:
        kept = kept.mT
    counts = kept.sum(-1, dtype=torch.int32)
    width = max(1, int(counts.max())) if compact else kept.shape[-1]
    heads_at_once = max(1, _BLOCKS_AT_ONCE // kept[0].numel())
    lists = torch.cat([_kept_first(heads, width) for heads in kept.split(heads_at_once)])
    group = q_heads // block_map.kv_heads
    return counts.repeat_interleave(group, 0), lists.repeat_interleave(group, 0)


def _kept_first(kept: torch.Tensor, width: int) -> torch.Tensor:
    """The first `width` column numbers of each row, kept ones before the others."""
    order = kept.to(torch.uint8).sort(dim=-1, descending=True, stable=True).indices
    return order[..., :width].int()


def rectangles(block_map: BlockMap, device: torch.device | str) -> list[torch.Tensor]:
    """`BlockMap.rectangles` of each KV head on the device: int64 [runs, 4], q0, q1, k0, k1 of each run of kept blocks.

    A long map has millions of runs: found here, they are never copied.
    """
    kept = torch.from_numpy(block_map.kept).to(device)
    rows, columns = (
        torch.nn.functional.pad(torch.from_numpy(sizes).to(device).cumsum(1), (1, 0))
        for sizes in (block_map.row_sizes, block_map.column_sizes)
    )
    found = []
    for head, row_ends, column_ends in zip(kept, rows, columns, strict=True):
        edge = torch.nn.functional.pad(head.to(torch.int8), (1, 1)).diff(dim=1)
        row, first = (edge == 1).nonzero().T
        end = (edge == -1).nonzero()[:, 1]
        found.append(torch.stack([row_ends[row], row_ends[row + 1], column_ends[first], column_ends[end]], 1))
    return found
