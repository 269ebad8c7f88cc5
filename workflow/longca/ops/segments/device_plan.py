"""What both GPU backends prepare: two schedules over one mask, or one a KV head."""

from dataclasses import dataclass
from math import ceil

import torch

from longca.ops.segments.items import ITEM_STEPS, Order, most_that_fit
from longca.ops.segments.lowering import DeviceSegments, Outline, lower, outline, with_bounds
from longca.ops.segments.pieces import SliceList, all_full
from longca.ops.segments.plan import Shape
from longca.ops.segments.schedule import Schedule, schedule
from longca.ops.segments.tiled_rows import tiled_rows

LOG2_E = 1.4426950408889634
CACHE_BYTES = 40e6  # of L2 that the columns of the heads in flight may take
# The orders of a backward (see schedule), by bytes of what a key tile sees: q and dout in 16 bits, dQ's sum in 32. Set
# by twelve patterns and by block maps over length, see "What was tried" in docs/segments.md.
# Heads inside: where neighbouring key tiles see the same rows and would not meet there otherwise, since longest first
# parts them, and a head alone fills the cache. Runs all alike keep their order, and with heads inside their dQ's
# sums collide.
SHORT_RUN_BYTES = 24e6  # on average, of all query heads of a group
UNEVEN_RUNS = 4.0  # the longest run over the mean
HEAD_BYTES = 20e6  # of one whole query head
# Heads apart: where runs are longer and differ. Programs that walk several heads of a tile drift apart, into columns of
# different heads, which do not fit the cache together. A shorter run does not repay the parts of dK and dV it leaves.
LONG_RUN_BYTES = 4.6e6  # on average, of one query head
# The forward in tall tiles (gluon_forward_tall.py): what a row of a step takes, as a share of the other form, and what
# an item costs beside its steps, in steps. With fewer items a program, programs end too far apart; with fewer steps a
# run, no mask gained. Read off both forms, see "What was tried" in docs/segments.md.
TALL_TIME, TALL_ITEM_STEPS, TALL_ITEMS, TALL_RUN_STEPS = 0.92, 3.5, 8, 24
NARROW_CELLS = 0.85  # a step half as wide runs at about this share of the speed
STAT_ALIGN = 4  # lse and delta are copied in boxes of fp32 that must start on 16 bytes


@dataclass(frozen=True)
class Tile:
    """Rows an item owns, columns a step reads, steps in flight."""

    rows: int
    columns: int
    stages: int


@dataclass(frozen=True)
class DevicePlan:
    """The forward walks queries over keys, the backward keys over queries."""

    forward: Schedule
    backward: Schedule
    forward_tile: Tile
    backward_tile: Tile


def prepare(
    shape: Shape,
    masks: list[SliceList],
    device: torch.device,
    forward_tiles: tuple[Tile, ...],
    backward_tile: Tile,
    persistent: bool,
    tall_tile: Tile | None = None,
) -> DevicePlan:
    """Lowers and schedules both directions on the device.

    The forward takes the first of its tiles, or a narrower one where a block map makes it compute much less; tall_tile
    where runs are long and that ends earlier.
    """
    programs = torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 4
    head_bytes = 4 * shape.head_dim  # two 16-bit tensors
    rows, forward_tile = _fit(masks, shape, device, forward_tiles, tall_tile, programs)
    section = most_that_fit(shape.kv_heads, shape.keys * head_bytes, CACHE_BYTES) * shape.group
    forward = schedule(rows, shape, shape.q_heads, section, programs, persistent)
    columns = lower(
        masks, shape.keys, backward_tile.rows, backward_tile.columns, device, transpose=True, align=STAT_ALIGN
    )
    section = most_that_fit(shape.kv_heads, shape.queries * head_bytes * shape.group, CACHE_BYTES)
    # the portable kernel, not persistent, has one order only
    order = _backward_order(columns, shape) if persistent else "longest_first"
    backward = schedule(columns, shape, shape.kv_heads, section, programs, persistent, shape.group, order)
    return DevicePlan(forward, backward, forward_tile, backward_tile)


def _fit(
    masks: list[SliceList],
    shape: Shape,
    device: torch.device,
    tiles: tuple[Tile, ...],
    tall_tile: Tile | None,
    programs: int,
) -> tuple[DeviceSegments, Tile]:
    best, rest = tiles[0], tiles[1:]
    # most of the work, and the same for all: they have as many rows
    tiled = tiled_rows(masks, shape.queries, best.rows, device)
    chosen = outline(tiled, best.columns)
    if all_full(masks):
        for tile in rest:
            other = outline(tiled, tile.columns)
            if other.cells < NARROW_CELLS * chosen.cells:
                chosen, best = other, tile
    if tall_tile and best == tiles[0] and _mean_run(chosen) >= TALL_RUN_STEPS:
        tall = outline(tiled_rows(masks, shape.queries, tall_tile.rows, device), tall_tile.columns)
        if _tall_ends_earlier(tall, chosen, shape.q_heads // len(masks), programs):
            chosen, best = tall, tall_tile
    return with_bounds(chosen), best


def _mean_run(outlined: Outline) -> float:
    """Steps; 0 where no row keeps anything."""
    return float(outlined.tiles[:, 4].sum()) / max(len(outlined.fields), 1)


def _tall_ends_earlier(tall: Outline, other: Outline, heads_each: int, programs: int) -> bool:
    """Of the two forms of the forward, by the steps of their items."""
    if len(_steps(tall.tiles)) * heads_each < TALL_ITEMS * programs:
        return False
    taller = TALL_TIME * _time(tall, TALL_ITEM_STEPS, heads_each / programs)
    return taller < _time(other, ITEM_STEPS, heads_each / programs)


def _time(outlined: Outline, item_steps: float, share: float) -> float:
    """Of the program with the most, in steps x rows: as many of the shortest items as its share of all comes to."""
    costs = _steps(outlined.tiles).double() + item_steps
    shortest = float(costs.min())
    return ceil(float(costs.sum()) * share / shortest) * shortest * outlined.tiled.tile_rows


def _steps(tiles: torch.Tensor) -> torch.Tensor:
    """Of each tile that has any: the others are no items."""
    return tiles[:, 4][tiles[:, 4] > 0]


def _backward_order(columns: DeviceSegments, shape: Shape) -> Order:
    """The order for these runs of query rows that key tiles see."""
    row_bytes = shape.head_dim * (2 + 2 + 4)
    steps = _steps(columns.tiles)
    if not len(steps):
        return "longest_first"
    longest, mean = int(steps.max()), float(steps.double().mean())
    run_bytes = mean * columns.tile_columns * row_bytes
    if (
        shape.queries * row_bytes > HEAD_BYTES
        and run_bytes * shape.group <= SHORT_RUN_BYTES
        and longest >= UNEVEN_RUNS * mean
    ):
        return "heads_inside"
    if shape.group > 1 and run_bytes >= LONG_RUN_BYTES and longest > mean:
        return "heads_apart"
    return "longest_first"
