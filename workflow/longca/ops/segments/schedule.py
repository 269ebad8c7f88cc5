"""Deals the tiles of all heads to persistent programs and packs what a kernel reads.

A kernel gets one int32 buffer, because each argument costs a warp-specialised kernel registers:
HEADER numbers (where items, segments, low and high start, queries, keys), then two for each program
(its first item, its steps) and one program more that ends the list, then those four tables.
"""

import heapq
from dataclasses import dataclass

import torch

from longca.ops.segments.lowering import DeviceSegments
from longca.ops.segments.plan import Shape

HEADER = 6
# An item: row begin, row end, head, first segment, end segment, steps, first query head, query heads, slot.
ITEM = 9
SEGMENT = 6  # see longca.masks.views.segments.SEGMENT_FIELDS

LONGEST_SHARE = 0.3  # of a program's fair share; a longer backward item is cut by query heads
# So that programs end together, items of the last heads (a share of them) are cut over a smaller share, though not
# into less than SHORTEST_CUT steps. In the order of their rows, the last TAIL of the work runs longest first.
TAIL = 0.25
LAST_HEADS = {
    True: (TAIL, 0.05),
    False: (0.125, 0.025),
}  # by heads_inside: share of the heads, share of a fair share
SHORTEST_CUT = 32
ITEM_STEPS = 2.0  # what an item costs beside its steps, in steps
# Items a program, up to which they are dealt one by one to the least loaded; more of them in the order of their rows,
# since to and fro they would be dealt unevenly.
GREEDY_ITEMS, GREEDY_ROWS = 64, 512


@dataclass(frozen=True)
class Schedule:
    """One orientation of a mask, dealt to `programs`.

    Tiles without steps are no items: when `idle` is set, the caller fills their rows. splits int32
    [m, 4]: KV head, row begin, first slot, slots of each tile that several items share; their parts
    go to `slots` fp32 slots and are added afterwards. heads_inside: see schedule. whole: no
    step of any tile has a cell to mask.
    """

    buffer: torch.Tensor
    programs: int
    splits: torch.Tensor
    slots: int
    idle: bool
    heads_inside: bool
    whole: bool


def schedule(
    segments: DeviceSegments,
    shape: Shape,
    heads: int,
    section: int,
    programs: int,
    persistent: bool,
    group: int = 1,
    heads_inside: bool = False,
) -> Schedule:
    """Items of `heads` heads; `section` neighbouring heads run together, so their columns share the L2 cache.

    `programs`: how many run at once. Each walks its list of items if `persistent`; else every item
    is a program. With `group` (the backward, where an item is one KV head and its `group` query
    heads) items over LONGEST_SHARE of a fair share are cut by query heads. Items run longest first; with
    `heads_inside` (the kernel then walks all heads of an item together) in the order of their rows, so that
    neighbours read the same columns at the same time.
    """
    device = segments.tiles.device
    items, splits, slots = _items(segments, heads, section, programs, group, heads_inside)
    if persistent:
        owner = _deal(items[:, 5] + ITEM_STEPS, programs, GREEDY_ROWS if heads_inside else GREEDY_ITEMS)
        owner, order = torch.sort(owner, stable=True)
        items = items[order]
    else:
        owner, programs = torch.arange(len(items), device=device), len(items)
    begin = torch.searchsorted(owner, torch.arange(programs + 1, device=device))
    work = torch.zeros(programs + 1, dtype=torch.int64, device=device).index_add(0, owner, items[:, 5])
    tables = torch.stack([begin, work], 1), items, segments.segments, segments.low, segments.high
    parts = [x.reshape(-1).int() for x in tables]
    size = HEADER
    starts = []
    for part in parts[:-1]:
        size += len(part)
        starts.append(size)
    header = torch.tensor([*starts, shape.queries, shape.keys], dtype=torch.int32)
    buffer = torch.cat([header.to(device), *parts])
    if len(buffer) >= 1 << 31:
        raise ValueError(f"the mask needs a table of {len(buffer)} numbers; a kernel can address 2^31")
    idle = bool((segments.tiles[:, 4] == 0).any())
    _, steps, whole_begin, whole_end, _, _ = segments.segments.T
    whole = bool(((whole_begin == 0) & (whole_end == steps)).all())
    return Schedule(buffer, programs, splits.int(), slots, idle, heads_inside, whole)


def _items(
    segments: DeviceSegments, heads: int, section: int, programs: int, group: int, heads_inside: bool
) -> tuple[torch.Tensor, torch.Tensor, int]:
    """int64 [n, ITEM] in the order they run; the splits; how many slots their parts take."""
    row_begin, row_end, first, end, steps = segments.tiles.long().T
    device, tiles = steps.device, len(steps)
    heads_each = heads // segments.masks
    tile = torch.arange(tiles, device=device)[steps > 0].repeat_interleave(heads_each)
    mask = tile // (tiles // segments.masks)
    head = mask * heads_each + torch.arange(len(tile), device=device) % heads_each

    pieces = torch.ones_like(tile)
    if group > 1:
        fair = max(float(steps.sum()) * heads_each * group / programs, 1.0)
        longest = torch.full(tile.shape, LONGEST_SHARE * fair, device=device)
        last, share = LAST_HEADS[heads_inside]
        longest[head >= (1 - last) * heads] = max(share * fair, min(SHORTEST_CUT, LONGEST_SHARE * fair))
        pieces = (steps[tile] * group / longest).ceil().long().clamp(1, group)
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
    items = torch.stack(columns, 1)
    if not heads_inside:
        return items[torch.argsort((head // section) * (1 << 32) - items[:, 5], stable=True)], splits, slots
    items = items[torch.argsort(((head // section) * group + lead) * tiles + tile, stable=True)]
    done = (items[:, 5] + ITEM_STEPS).cumsum(0)
    late = done > (1 - TAIL) * done[-1:]
    return items[torch.argsort(torch.where(late, (1 << 32) - items[:, 5], 0), stable=True)], splits, slots


def _deal(cost: torch.Tensor, programs: int, greedy_items: int) -> torch.Tensor:
    """The program of each item: greedily where items are few, else to and fro over the programs."""
    if len(cost) > greedy_items * programs:
        position = torch.arange(len(cost), device=cost.device)
        lap, lane = position // programs, position % programs
        return torch.where(lap % 2 == 0, lane, programs - 1 - lane)
    heap = [(0.0, program) for program in range(programs)]
    owner = []
    for item in cost.tolist():
        load, program = heap[0]
        heapq.heapreplace(heap, (load + item, program))
        owner.append(program)
    return torch.tensor(owner, dtype=torch.int64).to(cost.device)
