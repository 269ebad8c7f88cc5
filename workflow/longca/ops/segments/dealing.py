"""Deals items to persistent programs, so that these end together."""

import heapq
from collections.abc import Callable
from dataclasses import replace

import torch

from longca.ops.segments.items import Items, Order

LONGEST_SHARE = 0.3  # of a program's fair share; a longer backward item is cut by query heads
# Where programs have few tiles each, cutting over this larger share leaves fewer parts to write and to add, at
# PART_STEPS steps each, but programs end further apart. It is taken where that comes to less than COARSER of the steps.
COARSE_SHARE, FEW_TILES, PART_STEPS, COARSER = 0.6, 4, 5.0, 0.97
# Items a program, up to which they are dealt one by one to the least loaded; more of them to and fro, which is faster.
# Out of the order of their lengths that would deal unevenly, or part neighbours.
GREEDY_ITEMS = {"longest_first": 64, "heads_inside": 512, "heads_apart": 2048}


def deal(
    cut: Callable[[float], Items], programs: int, order: Order, tiles: int
) -> tuple[Items, torch.Tensor]:
    """Items sorted by program, and the program of each.

    cut: the items, if those over a share of a program's fair share are cut. tiles: of all heads.
    """
    items = cut(LONGEST_SHARE)
    owner = _owner(items, programs, order)
    if tiles <= FEW_TILES * programs and items.slots and order == "longest_first":
        coarse = cut(COARSE_SHARE)
        other = _owner(coarse, programs, order)
        if _duration(coarse, other, programs) < COARSER * _duration(items, owner, programs):
            items, owner = coarse, other
    owner, by_owner = torch.sort(owner, stable=True)
    return replace(items, table=items.table[by_owner]), owner


def _owner(items: Items, programs: int, order: Order) -> torch.Tensor:
    cost = items.costs
    if len(cost) > GREEDY_ITEMS[order] * programs:
        position = torch.arange(len(cost), device=cost.device)
        lap, lane = position // programs, position % programs
        return torch.where(lap % 2 == 0, lane, programs - 1 - lane)
    # One number for the load and the program: compared and made faster than pairs.
    heap = list(range(programs))
    owner = [heapq.heapreplace(heap, heap[0] + item * programs) % programs for item in cost.tolist()]
    return torch.tensor(owner, dtype=torch.int64, device="cpu").to(cost.device)


def _duration(items: Items, owner: torch.Tensor, programs: int) -> float:
    """Steps until the last program has ended and all parts are added."""
    load = items.costs.new_zeros(programs).index_add(0, owner, items.costs)
    return float(load.max()) + PART_STEPS * items.slots / programs
