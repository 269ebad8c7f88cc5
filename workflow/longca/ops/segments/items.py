"""Cuts a mask's tiles into items, what a program walks at a stretch, and puts them in the order they are dealt in."""

from dataclasses import dataclass
from typing import Literal

import torch

from longca.ops.segments.lowering import DeviceSegments

# An item: row begin, row end, head, first segment, end segment, steps, first query head, query heads, slot.
ITEM = 9
ITEM_STEPS = 2  # what an item costs beside its steps, in steps

Order = Literal["longest_first", "heads_inside", "heads_apart"]
# So that programs end together, items of the last heads (a share of them) are cut over a smaller share of a program's
# fair share, though not into less than SHORTEST_CUT steps. In the order of their rows, the last TAIL of the work runs
# longest first.
TAIL = 0.25
LAST_HEADS = {
    "longest_first": (0.125, 0.025),
    "heads_inside": (TAIL, 0.05),
}  # share of heads, of a fair share
SHORTEST_CUT = 32
PARTS_BYTES = 9e9  # of memory that the parts of heads apart may take; else two heads, or more, stay together


@dataclass(frozen=True)
class Items:
    """table int64 [n, ITEM], in the order they are dealt in. splits, slots: see schedule.Schedule."""

    table: torch.Tensor
    splits: torch.Tensor
    slots: int

    @property
    def costs(self) -> torch.Tensor:
        """What each takes a program, in steps."""
        return self.table[:, 5] + ITEM_STEPS


def cut_items(
    segments: DeviceSegments,
    heads: int,
    section: int,
    programs: int,
    group: int,
    order: Order,
    longest_share: float,
    part_bytes: int,
) -> Items:
    """The items of `heads` heads, each of `group` query heads; `section` neighbouring heads run together.

    One over `longest_share` of the fair share of `programs` programs is cut by query heads; with heads_apart every one
    is. part_bytes: of dK and dV of a tile in float32, which a piece of a tile leaves. order: see schedule.schedule.
    """
    row_begin, row_end, first, end, steps = segments.tiles.long().T
    device, tiles = steps.device, len(steps)
    heads_each = heads // segments.masks
    tile = torch.arange(tiles, device=device)[steps > 0].repeat_interleave(heads_each)
    mask = tile // (tiles // segments.masks)
    head = mask * heads_each + torch.arange(len(tile), device=device) % heads_each

    if order == "heads_apart":
        pieces = torch.full_like(tile, most_that_fit(group, len(tile) * part_bytes, PARTS_BYTES))
    elif group > 1:
        fair = max(float(steps.sum()) * heads_each * group / programs, 1.0)
        longest = torch.full(tile.shape, longest_share * fair, device=device)
        last, share = LAST_HEADS[order]
        longest[head >= (1 - last) * heads] = max(share * fair, min(SHORTEST_CUT, longest_share * fair))
        pieces = (steps[tile] * group / longest).ceil().long().clamp(1, group)
    else:
        pieces = torch.ones_like(tile)
    several = pieces > 1
    slot = torch.where(several, pieces, 0).cumsum(0) - torch.where(several, pieces, 0)
    slots = int(torch.where(several, pieces, 0).sum())
    splits = torch.stack([head, row_begin[tile], slot, pieces], 1)[several]

    source = torch.repeat_interleave(pieces)
    piece = torch.arange(len(source), device=device) - (pieces.cumsum(0) - pieces)[source]
    tile, head, several, pieces = tile[source], head[source], several[source], pieces[source]
    lead = (piece * group + pieces // 2) // pieces
    count = ((piece + 1) * group + pieces // 2) // pieces - lead
    columns = [
        row_begin[tile],
        row_end[tile],
        head,
        first[tile],
        end[tile],
        steps[tile] * count,
        head * group + lead,
        count,
        torch.where(several, slot[source] + piece, -1),
    ]
    turn = head // section if order == "longest_first" else (head // section) * group + lead
    return Items(_in_order(torch.stack(columns, 1), turn, tile, order), splits, slots)


def most_that_fit(count: int, bytes_each: float, room_bytes: float) -> int:
    """The largest divisor n of count for which n of bytes_each fit room_bytes; 1 where not even two do."""
    fits = [n for n in range(2, count + 1) if count % n == 0 and n * bytes_each <= room_bytes]
    return max(fits, default=1)


def _in_order(table: torch.Tensor, turn: torch.Tensor, tile: torch.Tensor, order: Order) -> torch.Tensor:
    if order != "heads_inside":
        return table[torch.argsort(turn * (1 << 32) - table[:, 5], stable=True)]
    table = table[torch.argsort(turn * (int(tile.max()) + 1) + tile, stable=True)] if len(tile) else table
    done = (table[:, 5] + ITEM_STEPS).cumsum(0)
    late = done > (1 - TAIL) * done[-1:]
    return table[torch.argsort(torch.where(late, (1 << 32) - table[:, 5], 0), stable=True)]
