"""The forward in tall tiles: where a plan takes them, and that it then walks exactly the mask."""

import numpy as np
import pytest
import torch
from segments_cases import MASKS, kept

from longca.masks.mask import draw_mask
from longca.ops import segments
from longca.ops.segments import device_plan
from longca.ops.segments.device_plan import Tile, _tall_ends_earlier, prepare
from longca.ops.segments.items import ITEM
from longca.ops.segments.lowering import outline
from longca.ops.segments.plan import Shape
from longca.ops.segments.schedule import SEGMENT
from longca.ops.segments.tiled_rows import tiled_rows

CPU = torch.device("cpu")
WIDE, NARROW, TALL = Tile(128, 128, 2), Tile(128, 64, 4), Tile(192, 128, 2)
FULL_8K = [(0, 8192, 0, 8192, "full")]


def tall_ends_earlier(slices, queries, q_heads):
    tall, other = (outline(tiled_rows([slices], queries, tile.rows, CPU), 128) for tile in (TALL, WIDE))
    return _tall_ends_earlier(tall, other, q_heads, 132)


@pytest.fixture
def forced(monkeypatch):
    monkeypatch.setattr(device_plan, "TALL_RUN_STEPS", 0)
    monkeypatch.setattr(device_plan, "_tall_ends_earlier", lambda *_: True)


@pytest.mark.parametrize(
    ("kind", "seqlen", "q_heads", "taller"),
    [  # as measured on an H200: 1.06, 1.02, 0.93, 0.95; 1.01, 1.04, 0.94, 0.94
        ("full", 8192, 64, True),
        ("full", 4096, 64, True),
        ("full", 2048, 64, False),
        ("full", 8192, 8, False),
        ("causal", 8192, 64, True),
        ("causal", 32768, 64, True),
        ("causal", 4096, 64, False),
        ("causal", 8192, 8, False),
    ],
)
def test_the_tall_tile_is_taken_where_it_ends_earlier(kind, seqlen, q_heads, taller):
    assert tall_ends_earlier([(0, seqlen, 0, seqlen, kind)], seqlen, q_heads) == taller


@pytest.mark.parametrize(
    "pattern", ["causal_sliding_window", "shared_question", "global_sliding", "block_causal_document"]
)
def test_short_and_uneven_runs_stay_in_the_other_form(pattern):
    assert not tall_ends_earlier(list(draw_mask(pattern, 8192).slices), 8192, 64)


@pytest.mark.parametrize(
    ("queries", "taller"),
    [
        (3456, True),  # 9 items of 192 rows for the program with the most, or 14 of 128
        (3520, False),  # 10, or 14, though 3 % less in all
        (5376, True),
    ],
)
def test_programs_end_with_whole_items(queries, taller):
    assert tall_ends_earlier([(0, queries, 0, 8192, "full")], queries, 64) == taller


@pytest.mark.parametrize("queries", [1536, 8192])
def test_too_few_items_a_program_stay_in_the_other_form_rows_that_keep_nothing_are_none(queries):
    # 512 items of 192 rows, 4 for the program with the most, which the steps alone would take over 6 of 128
    assert not tall_ends_earlier([(0, 1536, 0, 8192, "full")], queries, 64)


@pytest.mark.parametrize(("steps", "tall"), [(24, True), (23, False)])
def test_only_long_runs_take_tall_tiles(steps, tall, monkeypatch):
    monkeypatch.setattr(device_plan, "_tall_ends_earlier", lambda *_: True)
    shape = Shape(384, 4096, 4, 2, 128, 1.0)
    plan = prepare(shape, [[(0, 384, 0, 128 * steps, "full")]], CPU, (WIDE,), Tile(128, 64, 2), True, TALL)
    assert (plan.forward_tile == TALL) == tall


def test_what_is_compared_is_of_all_masks_and_the_query_heads_of_each(monkeypatch):
    asked = []
    monkeypatch.setattr(device_plan, "_tall_ends_earlier", lambda *args: asked.append(args))
    prepare(Shape(8192, 8192, 16, 4, 128, 1.0), [FULL_8K] * 4, CPU, (WIDE,), Tile(128, 64, 2), True, TALL)
    ((tall, other, heads_each, programs),) = asked
    assert (tall.tiled.tile_rows, tall.tile_columns, len(tall.tiles)) == (192, 128, 4 * 43)
    assert (other.tiled.tile_rows, other.tile_columns, len(other.tiles)) == (128, 128, 4 * 64)
    assert (heads_each, programs) == (4, 4)


def test_a_mask_that_takes_narrow_steps_stays_with_them(forced):
    blocks = [(0, 128, first, first + 64, "full") for first in range(0, 2048, 256)]
    shape = Shape(256, 2048, 1, 1, 128, 1.0)
    plan = prepare(shape, [blocks], CPU, (WIDE, NARROW), Tile(128, 64, 2), True, TALL)
    assert plan.forward_tile == NARROW


@pytest.mark.parametrize("deterministic", [False, True])
def test_a_deterministic_backward_walks_tiles_of_128_rows(deterministic, forced):
    pytest.importorskip("triton")
    plan = segments.plan(
        FULL_8K, 8192, 8192, 4, 2, 128, torch.bfloat16, "cpu", "gluon", deterministic=deterministic
    )
    assert plan.prepared.forward_tile.rows == (128 if deterministic else 192)


@pytest.mark.parametrize("name", MASKS)
def test_items_in_tall_tiles_walk_exactly_the_mask(name, forced):
    slices, queries, keys = MASKS[name]
    shape = Shape(queries, keys, 4, 2, 128, 1.0)
    plan = prepare(shape, [slices], CPU, (WIDE,), Tile(128, 64, 2), True, TALL)
    assert plan.forward_tile == TALL
    buffer = plan.forward.buffer.numpy()
    items_at, segments_at, low_at, high_at = buffer[:4]
    low, high = buffer[low_at:high_at], buffer[high_at:]
    table = buffer[segments_at:low_at].reshape(-1, SEGMENT)
    walked = np.zeros((4, queries, keys), int)
    for begin, end, head, first, last, steps, *_ in buffer[items_at:segments_at].reshape(-1, ITEM):
        assert begin % 192 == 0 and end == min(begin + 192, queries)
        assert steps == table[first:last, 1].sum()
        for column, run, _, _, bound, spread in table[first:last]:
            for row in range(begin, end):
                at = bound + (row - begin) * spread
                assert column <= low[at] and high[at] <= column + run * 128
                walked[head, row, low[at] : high[at]] += 1
    assert (walked == kept(slices, queries, keys).numpy()).all()
