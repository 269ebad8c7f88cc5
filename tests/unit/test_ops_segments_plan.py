"""The lowering by torch operations is the NumPy view; the schedule deals every step once; torch takes the operator."""

from itertools import pairwise

import numpy as np
import pytest
import torch
from segments_cases import MASKS

from longca.masks.blocks import draw_block_map
from longca.masks.views import segments as view
from longca.ops import segments
from longca.ops.segments import items
from longca.ops.segments.device_plan import CACHE_BYTES, Tile, _fit, prepare
from longca.ops.segments.items import ITEM, most_that_fit
from longca.ops.segments.lowering import lower
from longca.ops.segments.plan import Shape
from longca.ops.segments.row_intervals import order_by
from longca.ops.segments.schedule import HEADER, schedule

CPU = torch.device("cpu")


def assert_same(masks, rows, columns, tile, transpose, align):
    got = lower(masks, rows, *tile, CPU, transpose, align)
    segment = bound = 0
    for i, slices in enumerate(masks):
        want = view.lower(slices, rows, columns, *tile, transpose, align)
        fields = got.segments[segment : segment + len(want.segments)].numpy().copy()
        fields[:, 4] -= bound
        np.testing.assert_array_equal(fields, want.segments)
        np.testing.assert_array_equal(got.low[bound : bound + len(want.low)], want.low)
        np.testing.assert_array_equal(got.high[bound : bound + len(want.high)], want.high)
        tiles = got.tiles[i * len(want.tiles) : (i + 1) * len(want.tiles)].numpy().copy()
        tiles[:, 2:4] -= segment
        np.testing.assert_array_equal(tiles, want.tiles)
        segment, bound = segment + len(want.segments), bound + len(want.low)
    assert segment == len(got.segments) and bound == len(got.low)


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("tile", [(64, 32), (16, 64), (96, 32)])
def test_lowering_is_the_view(name, transpose, tile):
    slices, queries, keys = MASKS[name]
    rows, columns = (keys, queries) if transpose else (queries, keys)
    assert_same([slices], rows, columns, tile, transpose, 4)


def test_lowering_of_several_masks_is_theirs_one_after_another():
    rng = np.random.default_rng(3)
    masks = []
    for density in (0.2, 0.0, 0.6):
        kept = rng.random((9, 7)) < density
        masks.append(
            [(20 * i, 20 * i + 20, 30 * j, 30 * j + 30, "full") for i, j in np.argwhere(kept).tolist()]
        )
    assert_same(masks, 180, 210, (64, 32), False, 1)
    assert_same(masks, 210, 180, (64, 32), True, 4)


@pytest.mark.parametrize(("seqlen", "block"), [(1024, 64), (1000, 64), (1024, 32), (960, 96), (700, 256)])
@pytest.mark.parametrize("transpose", [False, True])
def test_rows_of_a_block_map_are_bounded_in_groups_as_one_by_one(seqlen, block, transpose):
    drawn = draw_block_map("uniform_block", seqlen, block, 0.3, 2)
    masks = [drawn.slices(head) for head in range(2)]
    assert_same(masks, seqlen, seqlen, (128, 64), transpose, 4)


def test_full_slices_may_be_an_array():
    slices = [(0, 20, 10, 40, "full"), (20, 60, 0, 20, "full"), (20, 60, 50, 60, "full")]
    array = np.array([piece[:4] for piece in slices])
    for a, b in zip(
        vars(lower([slices, slices[:1]], 60, 16, 8, CPU)).values(),
        vars(lower([array, array[:1]], 60, 16, 8, CPU)).values(),
        strict=True,
    ):
        assert torch.equal(a, b) if isinstance(a, torch.Tensor) else a == b
    q, k = torch.randn(2, 60, 16), torch.randn(2, 60, 16)
    outs = [
        segments.forward(q, k, k, segments.plan(mask, 60, 60, 2, 2, 16, torch.float32, "cpu"))[0]
        for mask in (slices, array, [slices, slices], [array, array])
    ]
    assert all(torch.equal(out, outs[0]) for out in outs[:2])
    assert all(torch.equal(out, outs[2]) for out in outs[2:])


@pytest.mark.parametrize("scale", [1, 1 << 31])  # keys of 32 bits, and more
def test_only_what_is_out_of_order_is_sorted(scale):
    first, second = torch.tensor([2, 0, 2, 0]), torch.tensor([1, 3, 0, 3]) * scale
    order = order_by(first, second)
    assert order.tolist() == [1, 3, 2, 0]
    assert order_by(first[order], second[order]) is None
    assert order_by(first[:0], second[:0]) is None


def test_slices_may_stand_in_any_order():
    slices = [
        (20 * i, 20 * i + 20, 30 * j, 30 * j + 30, "full") for i in range(9) for j in range(0, 7, 1 + i % 3)
    ]
    shuffled = [slices[i] for i in np.random.default_rng(5).permutation(len(slices))]
    for transpose in (False, True):
        given = (torch.tensor([piece[:4] for piece in pieces]) for pieces in (slices, shuffled))
        a, b = (vars(lower([pieces], 210, 64, 32, CPU, transpose)) for pieces in given)
        assert all(torch.equal(a[name], b[name]) for name in ("tiles", "segments", "low", "high"))


@pytest.mark.parametrize("programs", [1, 5, 132])
@pytest.mark.parametrize("masks", [1, 4])
@pytest.mark.parametrize("order", ["longest_first", "heads_inside", "heads_apart"])
def test_every_step_of_every_head_is_dealt_once(programs, masks, order):
    shape = Shape(1000, 1000, 32, 4, 64, 1.0)
    lists = [[(0, 600, 0, 600 - 50 * i, "causal"), (600, 1000, 0, 1000, "full")] for i in range(masks)]
    tiles = lower(lists, 1000, 128, 64, CPU, transpose=True)
    dealt = schedule(tiles, shape, 4, 2, programs, True, 8, order)
    buffer = dealt.buffer.tolist()
    table = np.array(buffer[HEADER : HEADER + 2 * programs + 2]).reshape(-1, 2)
    items = np.array(buffer[buffer[0] : buffer[1]]).reshape(-1, ITEM)
    assert table[0, 0] == 0 and table[-1, 0] == len(items)
    for (begin, work), (end, _) in pairwise(table):
        assert items[begin:end, 5].sum() == work
    walked = {}
    for row, _, head, _, _, steps, first, count, _ in items.tolist():
        for query_head in range(first, first + count):
            assert query_head // 8 == head
            key = row, query_head
            assert key not in walked
            walked[key] = steps // count
    want = {
        (tile[0], 8 * head + i): tile[4]
        for mask in range(masks)
        for tile in tiles.tiles[mask * 8 : mask * 8 + 8].tolist()
        for head in range(mask * 4 // masks, (mask + 1) * 4 // masks)
        for i in range(8)
        if tile[4]
    }
    assert walked == want
    # a cut tile's parts fill its slots, and every slot is filled once
    parts = [(row[2], row[0], row[8]) for row in items.tolist() if row[8] >= 0]
    assert sorted(parts) == sorted(
        (head, row, slot + i) for head, row, slot, slots in dealt.splits.tolist() for i in range(slots)
    )
    assert sorted(slot for _, _, slot in parts) == list(range(dealt.slots))


@pytest.mark.parametrize(
    ("slices", "by_rows", "by_columns"),
    [
        ([(0, 256, 0, 2048, "full")], True, True),
        ([(0, 128, 128, 256, "full"), (128, 256, 0, 128, "full"), (128, 256, 512, 640, "full")], True, True),
        ([(0, 128, 64, 192, "full")], True, False),
        ([], True, True),
        ([(0, 256, 0, 2048, "causal")], False, False),
        ([(0, 256, 0, 2000, "full")], False, False),  # a last step that is not full
        ([(0, 200, 0, 2048, "full")], False, False),  # a tile some of whose rows keep nothing
    ],
)
def test_whole_says_that_no_step_has_a_cell_to_mask(slices, by_rows, by_columns):
    for transpose, whole in ((False, by_rows), (True, by_columns)):
        tiles = lower([slices], 2048 if transpose else 256, 128, 64, CPU, transpose=transpose)
        dealt = schedule(tiles, Shape(256, 2048, 2, 2, 64, 1.0), 2, 1, 4, persistent=True)
        assert dealt.whole == whole


def test_a_tile_of_keys_that_is_cut_short_is_not_whole():
    # its keys past the end would reach dQ through a step without bounds
    shape = Shape(256, 200, 2, 2, 64, 1.0)
    tiles = lower([[(0, 256, 0, 200, "full")]], 200, 128, 64, CPU, transpose=True)
    assert not schedule(tiles, shape, 2, 1, 4, persistent=True).whole


def test_heads_inside_runs_neighbouring_tiles_together_and_the_longest_last_items_first():
    shape = Shape(4096, 4096, 8, 4, 64, 1.0)
    documents = [(256 * i, 256 * i + 256, 256 * i, 256 * i + 256, "causal") for i in range(16)]
    tiles = lower([documents], 4096, 128, 64, CPU, transpose=True)
    dealt = schedule(tiles, shape, 4, 1, 1, persistent=True, group=2, order="heads_inside")
    buffer = dealt.buffer.tolist()
    row, _, head, _, _, steps, *_ = np.array(buffer[buffer[0] : buffer[1]]).reshape(-1, ITEM).T
    in_order = 3 * 32  # all but the last KV head
    assert dealt.order == "heads_inside" and dealt.slots == 0
    assert list(zip(head, row, strict=True))[:90] == [(h, 128 * i) for h in range(3) for i in range(32)][:90]
    assert (np.diff(steps[in_order:]) <= 0).all()


LONG = 32768
DOCUMENTS = [(0, 8192, 0, 8192, "causal")] + [
    (i, i + 1024, i, i + 1024, "causal") for i in range(8192, LONG, 1024)
]


CAUSAL, BLOCKS = (
    [(0, LONG, 0, LONG, "causal")],
    [(i, i + 128, i, i + 128, "full") for i in range(0, LONG, 128)],
)
SHORT = [(0, 512, 0, 512, "causal"), (512, 4096, 512, 513, "full")]


@pytest.mark.parametrize(
    ("what", "slices", "seqlen", "heads", "persistent", "order"),
    [
        ("short, uneven runs of a long sequence", DOCUMENTS, LONG, (64, 8), True, "heads_inside"),
        ("the portable kernel has one order", DOCUMENTS, LONG, (64, 8), False, "longest_first"),
        ("long, uneven runs", CAUSAL, LONG, (64, 8), True, "heads_apart"),
        ("no group to take apart", CAUSAL, LONG, (8, 8), True, "longest_first"),
        ("long runs all alike", [(0, LONG, 0, LONG, "full")], LONG, (64, 8), True, "longest_first"),
        ("short runs all alike", BLOCKS, LONG, (64, 8), True, "longest_first"),
        ("a short sequence", SHORT, 4096, (64, 8), True, "longest_first"),
        ("nothing kept", [], LONG, (64, 8), True, "longest_first"),
    ],
)
def test_the_order_of_a_backward(what, slices, seqlen, heads, persistent, order):
    tiles = (Tile(128, 128, 2),), Tile(128, 64, 2)
    shape = Shape(seqlen, seqlen, *heads, 128, 1.0)
    assert prepare(shape, [slices], CPU, *tiles, persistent).backward.order == order, what


def dealt_items(seqlen, programs, order, kv_heads=2, section=1):
    """A causal mask's backward, eight query heads a KV head."""
    shape = Shape(seqlen, seqlen, 8 * kv_heads, kv_heads, 64, 1.0)
    tiles = lower([[(0, seqlen, 0, seqlen, "causal")]], seqlen, 128, 64, CPU, transpose=True)
    dealt = schedule(tiles, shape, kv_heads, section, programs, True, 8, order)
    buffer = dealt.buffer.tolist()
    return dealt, np.array(buffer[buffer[0] : buffer[1]]).reshape(-1, ITEM)


def test_heads_apart_walks_a_query_head_of_all_tiles_before_the_next_longest_first(monkeypatch):
    _, table = dealt_items(1024, 1, "heads_apart")
    assert table[:, 6].tolist() == [head for head in range(16) for _ in range(8)] and (table[:, 7] == 1).all()
    assert table[:, 5].reshape(16, 8).tolist() == [list(range(16, 0, -2))] * 16
    # where the parts of eight pieces a tile have no room, heads stay together in twos
    monkeypatch.setattr(items, "PARTS_BYTES", 16 * 4 * (2 * 128 * 64 * 4))
    dealt, table = dealt_items(1024, 1, "heads_apart")
    assert (table[:, 7] == 2).all() and dealt.slots == 16 * 4


def test_few_tiles_are_cut_into_fewer_parts_where_that_ends_earlier():
    # at 1024 tokens parts take a fourth as long as the steps, at 2048 an eighth
    slots = {
        seqlen: dealt_items(seqlen, 132, "longest_first", 8, section)[0].slots
        for seqlen, section in ((1024, 8), (2048, 4))
    }
    assert slots == {1024: 248, 2048: 504}
    # with more than four tiles a program, as here, finer cuts stay although the same model would have none
    assert dealt_items(17024, 132, "longest_first", 4)[0].slots == 416


def test_long_backward_items_are_cut_and_their_parts_added():
    shape = Shape(4096, 4096, 8, 1, 64, 1.0)
    question = [(0, 128, 0, 128, "causal"), (128, 4096, 0, 128, "full")]
    tiles = lower([question], 4096, 128, 64, CPU, transpose=True)
    dealt = schedule(tiles, shape, 1, 1, 132, persistent=True, group=8)
    assert dealt.splits.tolist() == [[0, 0, 0, 8]]
    assert dealt.slots == 8 and dealt.idle


def test_a_block_map_takes_the_tile_that_computes_less():
    wide, narrow = Tile(128, 128, 2), Tile(128, 64, 4)
    shape = Shape(256, 2048, 1, 1, 64, 1.0)
    blocks = [(0, 128, first, first + 64, "full") for first in range(0, 2048, 256)]
    assert _fit([blocks], shape, CPU, (wide, narrow), None, 4)[1] == narrow
    assert _fit([[(0, 256, 0, 2048, "full")]], shape, CPU, (wide, narrow), None, 4)[1] == wide


@pytest.mark.parametrize("masks", [[[]], [[]] * 8])
@pytest.mark.parametrize("heads", [8, 64])
def test_a_long_mask_that_keeps_nothing_has_no_items(masks, heads):
    shape = Shape(8192, 8192, heads, 8, 128, 1.0)
    tiles = (Tile(128, 128, 2), Tile(128, 64, 4))
    plan = prepare(shape, masks, CPU, tiles, Tile(128, 64, 2), True, Tile(192, 128, 2))
    for side in (plan.forward, plan.backward):
        items_begin, items_end = side.buffer[:2].tolist()
        assert side.idle and items_begin == items_end


def test_heads_share_the_cache_in_equal_sections():
    assert [most_that_fit(8, size, CACHE_BYTES) for size in (1e6, 1.2e7, 2e7, 1e9)] == [8, 2, 2, 1]
