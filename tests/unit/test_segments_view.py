"""Segments expand to the cells of their slices, whatever the tiling, in both orientations."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from segments_cases import kept

from longca.masks.views.segments import expand, lower

TYPES = ("full", "causal", "inv_causal", "bi_causal")


@st.composite
def masks(draw):
    """Slices that share no cell: a grid of random cuts, some of its rectangles taken."""
    cuts = [
        sorted(draw(st.sets(st.integers(1, n - 1), max_size=5)) | {0, n}) if n > 1 else [0, 1]
        for n in (draw(st.integers(1, 150)), draw(st.integers(1, 150)))
    ]
    slices = []
    for q0, q1 in zip(cuts[0], cuts[0][1:], strict=False):
        for k0, k1 in zip(cuts[1], cuts[1][1:], strict=False):
            kind = draw(st.sampled_from((None, *TYPES)))
            if kind:
                slices.append((q0, q1, k0, k1, kind))
    return slices, cuts[0][-1], cuts[1][-1]


@settings(max_examples=150, deadline=None)
@given(masks(), st.sampled_from([(128, 128), (64, 32), (16, 64), (1, 1), (96, 32)]), st.sampled_from([1, 4]))
def test_expands_to_the_cells_of_its_slices(mask, tile, align):
    slices, queries, keys = mask
    want = kept(slices, queries, keys).numpy()
    assert (expand(lower(slices, queries, keys, *tile, align=align)) == want).all()
    transposed = lower(slices, keys, queries, *tile, transpose=True, align=align)
    assert (expand(transposed) == want.T).all()
    assert (transposed.segments[:, 0] % align == 0).all()


def test_a_causal_tile_masks_its_diagonal_step_alone():
    segments = lower([(0, 512, 0, 512, "causal")], 512, 512, 128, 128)
    assert segments.segments[:, :4].tolist() == [[0, 1, 0, 0], [0, 2, 0, 1], [0, 3, 0, 2], [0, 4, 0, 3]]
    assert segments.tiles[:, 4].tolist() == [1, 2, 3, 4]


def test_rows_with_the_same_bounds_store_them_once():
    segments = lower([(0, 256, 3, 250, "full")], 256, 256, 128, 128)
    assert segments.low.tolist() == [3, 3]
    assert segments.high.tolist() == [250, 250]
    assert segments.segments[:, 5].tolist() == [0, 0]


def test_documents_inside_a_tile_are_one_segment():
    starts = range(0, 128, 8)
    segments = lower([(a, a + 8, a, a + 8, "causal") for a in starts], 128, 128, 128, 128)
    assert len(segments.segments) == 1


def test_columns_that_no_row_of_a_tile_keeps_are_not_walked():
    blocks = [(0, 128, 0, 128, "full"), (0, 128, 4096, 4224, "full")]
    assert lower(blocks, 128, 8192, 128, 128).tiles[0, 4] == 2


def test_a_partial_key_tile_masks_every_step():
    # Rows past the last key would otherwise reach dQ.
    segments = lower([(0, 256, 0, 200, "full")], 200, 256, 128, 64, transpose=True)
    assert segments.segments[:, 2:4].tolist() == [[0, 4], [0, 0]]


@pytest.mark.parametrize("tile_rows", [128, 64])
def test_an_empty_mask_has_tiles_without_segments(tile_rows):
    segments = lower([], 130, 70, tile_rows, 64)
    assert len(segments.segments) == 0
    assert segments.tiles[-1].tolist() == [128, 130, 0, 0, 0]
    assert not expand(segments).any()


def test_size_grows_with_rows():
    small, large = (lower([(0, n, 0, n, "causal")], n, n, 128, 128) for n in (4096, 8192))
    assert len(large.low) == 2 * len(small.low)
