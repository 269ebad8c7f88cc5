"""What each program walks, packed as a kernel reads it.

A kernel gets one int32 buffer, because each argument costs a warp-specialised kernel registers:
HEADER numbers (where items, segments, low and high start, queries, keys), then two for each program
(its first item, its steps) and one program more that ends the list, then those four tables.
"""

from dataclasses import dataclass

import torch

from longca.ops.segments.dealing import LONGEST_SHARE, deal
from longca.ops.segments.items import Items, Order, cut_items
from longca.ops.segments.lowering import DeviceSegments
from longca.ops.segments.plan import Shape

HEADER = 6
SEGMENT = 6  # see longca.masks.views.segments.SEGMENT_FIELDS


@dataclass(frozen=True)
class Schedule:
    """One orientation of a mask, dealt to `programs`.

    Tiles without steps are no items: when `idle` is set, the caller fills their rows. splits int32
    [m, 4]: KV head, row begin, first slot, slots of each tile that several items share; their parts
    go to `slots` fp32 slots and are added afterwards. order: see schedule. whole: no step of any tile
    has a cell to mask.
    """

    buffer: torch.Tensor
    programs: int
    splits: torch.Tensor
    slots: int
    idle: bool
    order: Order
    whole: bool


def schedule(
    segments: DeviceSegments,
    shape: Shape,
    heads: int,
    section: int,
    programs: int,
    persistent: bool,
    group: int = 1,
    order: Order = "longest_first",
) -> Schedule:
    """Items of `heads` heads; `section` neighbouring heads run together, so their columns share the L2 cache.

    `programs`: how many run at once. Each walks its list of items if `persistent`; else every item
    is a program. With `group` (the backward, where an item is one KV head and its `group` query
    heads) items over a share of what each program has to do are cut by query heads. Items run longest first;
    with the order heads_inside (the kernel then walks all heads of an item together) in the order of their
    rows, so that neighbours read the same columns at the same time; with heads_apart every tile is cut into its
    query heads, and items run longest first of one query head before the next one's, so that all programs
    are in one head's columns at a time.
    """
    device = segments.tiles.device

    def cut(share: float) -> Items:
        part_bytes = 2 * segments.tile_rows * shape.head_dim * 4
        return cut_items(segments, heads, section, programs, group, order, share, part_bytes)

    if persistent:
        tiles = len(segments.tiles) // segments.masks * heads
        items, owner = deal(cut, programs, order, tiles)
    else:
        items = cut(LONGEST_SHARE)
        owner, programs = torch.arange(len(items.table), device=device), len(items.table)
    if not len(table := items.table):
        programs = 0
    begin = torch.searchsorted(owner, torch.arange(programs + 1, device=device))
    work = torch.zeros(programs + 1, dtype=torch.int64, device=device).index_add(0, owner, table[:, 5])
    tables = torch.stack([begin, work], 1), table, segments.segments, segments.low, segments.high
    parts = [x.reshape(-1).int() for x in tables]
    size = HEADER
    starts = []
    for part in parts[:-1]:
        size += len(part)
        starts.append(size)
    header = torch.tensor([*starts, shape.queries, shape.keys], dtype=torch.int32, device="cpu")
    buffer = torch.cat([header.to(device), *parts])
    if len(buffer) >= 1 << 31:
        raise ValueError(f"the mask needs a table of {len(buffer)} numbers; a kernel can address 2^31")
    idle = bool((segments.tiles[:, 4] == 0).any())
    return Schedule(buffer, programs, items.splits.int(), items.slots, idle, order, segments.whole)
