"""Lists and rectangles that block-sparse kernels walk hold the map's blocks, no more and no fewer."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from longca.masks.blocks import draw_block_map
from longca.masks.views import block_lists as view
from longca.masks.views.block_lists import block_lists, rectangles
from longca.ops.segments.lowering import lower

MAPS = st.builds(
    draw_block_map,
    st.sampled_from(["uniform_block", "variable_block"]),
    seqlen=st.integers(1, 1500),
    block=st.sampled_from([128, 200]),
    density=st.sampled_from([0.01, 0.3, 0.7, 1.0]),
    kv_heads=st.integers(1, 3),
    seed=st.integers(0, 99),
)


@settings(deadline=None)
@given(MAPS, st.integers(1, 3), st.booleans(), st.booleans())
def test_each_query_head_lists_its_kv_heads_blocks_in_order(drawn, group, transpose, compact):
    counts, lists = block_lists(drawn, group * drawn.kv_heads, "cpu", transpose, compact)
    assert counts.dtype == lists.dtype == torch.int32
    kept = drawn.kept.swapaxes(1, 2) if transpose else drawn.kept
    assert counts.shape == (group * drawn.kv_heads, kept.shape[1])
    assert lists.shape[2] == (max(1, kept.sum(2).max()) if compact else kept.shape[2])
    for head in range(group * drawn.kv_heads):
        for row in range(kept.shape[1]):
            listed = lists[head, row, : counts[head, row]].tolist()
            assert listed == np.flatnonzero(kept[head // group, row]).tolist()


def test_heads_taken_a_few_at_a_time_make_the_same_lists(monkeypatch):
    drawn = draw_block_map("uniform_block", 1024, 64, 0.3, 3)
    whole = block_lists(drawn, 3, "cpu")
    monkeypatch.setattr(view, "_BLOCKS_AT_ONCE", 1)
    assert all(torch.equal(a, b) for a, b in zip(whole, block_lists(drawn, 3, "cpu"), strict=True))


@settings(deadline=None)
@given(MAPS)
def test_rectangles_on_the_device_are_the_maps_own(drawn):
    for head, found in enumerate(rectangles(drawn, "cpu")):
        assert found.dtype == torch.int64
        assert np.array_equal(found.numpy(), drawn.rectangles(head))


@pytest.mark.parametrize("transpose", [False, True])
def test_tensors_are_lowered_as_arrays_are(transpose):
    drawn = draw_block_map("variable_block", 1100, 200, 0.4, 2)
    arrays = [drawn.rectangles(head) for head in range(2)]
    cpu = torch.device("cpu")
    one, other = (lower(masks, 1100, 128, 64, cpu, transpose) for masks in (arrays, rectangles(drawn, cpu)))
    for name in ("tiles", "segments", "low", "high"):
        assert torch.equal(getattr(one, name), getattr(other, name)), name
