"""Every view of every mask expands to the cells of the pattern's own rule."""

import contextlib
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from masks_strategy import cells, masks, predicate, slice_lists

from longca.masks.mask import draw_mask
from longca.masks.patterns import PATTERNS
from longca.masks.slices import Slice, validate_slices
from longca.masks.views import flashmask, flex, segments, varlen, window
from longca.masks.views.registry import VIEWS
from longca.masks.views.unavailable import ViewUnavailable

ALWAYS = ("dense", "flex", "segments")
# What a view expresses for drawn masks of each pattern, as kernels count on it.
EXPRESSES = {
    "varlen": {"full", "causal", "full_document", "causal_document"},
    "window": {"full", "causal", "full_sliding_window", "causal_sliding_window"},
    "flashmask": set(PATTERNS),
    **{name: set(PATTERNS) for name in ALWAYS},
}


@pytest.mark.parametrize("view", VIEWS)
@settings(max_examples=150, deadline=None)
@given(mask=masks())
def test_views_of_patterns_keep_what_the_rule_says(view, mask):
    try:
        lowered = VIEWS[view].lower(mask.slices, mask.seqlen, mask.seqlen)
    except ViewUnavailable:
        assert mask.pattern not in EXPRESSES[view]
    else:
        assert (VIEWS[view].expand(lowered) == predicate(mask)).all()


@pytest.mark.parametrize("view", VIEWS)
@settings(max_examples=150, deadline=None)
@given(drawn=slice_lists())
def test_views_of_any_slices_keep_their_cells(view, drawn):
    slices, queries, keys = drawn
    try:
        lowered = VIEWS[view].lower(slices, queries, keys)
    except ViewUnavailable:
        assert view not in ALWAYS
    else:
        assert (VIEWS[view].expand(lowered) == cells(slices, queries, keys)).all()


@settings(max_examples=150, deadline=None)
@given(slice_lists(), st.integers(1, 5), st.integers(1, 5), st.booleans())
def test_tiles_of_any_size_keep_the_cells(drawn, tile_rows, tile_columns, transpose):
    slices, queries, keys = drawn
    kept = cells(slices, queries, keys)
    assert (flex.expand(flex.lower(slices, queries, keys, tile_rows)) == kept).all()
    rows, columns = (keys, queries) if transpose else (queries, keys)
    lowered = segments.lower(slices, rows, columns, tile_rows, tile_columns, transpose)
    assert (segments.expand(lowered) == (kept.T if transpose else kept)).all()


@pytest.mark.parametrize("view", EXPRESSES)
@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("seqlen", [1025, 2048])
def test_views_express_these_patterns(view, pattern, seqlen):
    sizes = {"window": 64, "global_tokens": 32, "block": 128}
    parameters = {name: sizes[name] for name in PATTERNS[pattern].parameters if name in sizes}
    slices = draw_mask(pattern, seqlen, parameters=parameters).slices
    if pattern in EXPRESSES[view]:
        VIEWS[view].lower(slices, seqlen, seqlen)
    else:
        with pytest.raises(ViewUnavailable, match=rf"^{view}: "):
            VIEWS[view].lower(slices, seqlen, seqlen)


@settings(deadline=None)
@given(masks())
def test_views_come_from_cells_not_from_how_they_are_cut(mask):
    """A mask cut into rows has the views of the mask itself."""
    by_row = [
        Slice(row, row + 1, low, high, "full")
        for row, kept in enumerate(predicate(mask))
        for low, high in np.flatnonzero(np.diff(kept, prepend=False, append=False)).reshape(-1, 2).tolist()
    ]
    for view in VIEWS.values():
        try:
            expected = view.lower(mask.slices, mask.seqlen, mask.seqlen)
        except ViewUnavailable as unavailable:
            with pytest.raises(ViewUnavailable, match=str(unavailable).replace("(", r"\(")):
                view.lower(by_row, mask.seqlen, mask.seqlen)
        else:
            assert (view.expand(view.lower(by_row, mask.seqlen, mask.seqlen)) == view.expand(expected)).all()


@pytest.mark.parametrize("pattern", PATTERNS)
def test_masks_of_96k_tokens_are_never_cells(pattern):
    """98304 x 98304 cells would take 9.7 GB as booleans."""
    seqlen = 98304
    tracemalloc.start()
    mask = draw_mask(pattern, seqlen)
    validate_slices(mask.slices, seqlen, seqlen)
    assert len(mask.digest) == 64
    for name, view in VIEWS.items():
        if name != "dense":
            with contextlib.suppress(ViewUnavailable):
                view.lower(mask.slices, seqlen, seqlen)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6


def test_window_of_the_whole_sequence_but_one_is_causal():
    for distance, left in ((1022, 1022), (1023, -1), (1024, -1)):
        mask = draw_mask("causal_sliding_window", 1024, parameters={"window": distance})
        view = window.lower(mask.slices, 1024, 1024)
        assert (view.left, view.right, view.causal) == (left, 0, True)


def test_window_is_aligned_at_the_bottom_right():
    view = window.lower([Slice(0, 3, 0, 5, "causal")], 3, 5)
    assert (view.left, view.right, view.causal) == (-1, 0, True)
    view = window.lower([Slice(0, 5, 0, 3, "causal")], 5, 3)
    assert (view.left, view.right, view.causal) == (-1, 0, True)
    assert not window.expand(view)[:2].any()


def test_varlen_boundaries_are_those_of_the_documents_with_tokens():
    mask = draw_mask("causal_document", 8, documents=[3, 0, 4, 1, 0])
    view = varlen.lower(mask.slices, 8, 8)
    assert view.cu_seqlens_q.tolist() == view.cu_seqlens_k.tolist() == [0, 3, 7, 8]
    assert view.causal
    assert view.cu_seqlens_q.dtype == view.cu_seqlens_k.dtype == np.int32


def test_varlen_gives_unseen_keys_and_blind_queries_sequences_of_their_own():
    view = varlen.lower([Slice(1, 3, 2, 4, "full")], 4, 6)
    assert not view.causal
    assert view.cu_seqlens_q.tolist() == [0, 1, 1, 3, 4, 4]
    assert view.cu_seqlens_k.tolist() == [0, 0, 2, 4, 4, 6]


def test_flashmask_columns_of_a_causal_document_mask():
    view = flashmask.lower(draw_mask("causal_document", 7, documents=[3, 4]).slices, 7, 7)
    assert view.lts.tolist() == [3, 3, 3, 7, 7, 7, 7]
    assert view.lte.tolist() == [7] * 7
    assert view.uts.tolist() == [0] * 7
    assert view.ute.tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert view.causal


def test_flashmask_columns_of_a_document_mask():
    view = flashmask.lower(draw_mask("full_document", 7, documents=[3, 4]).slices, 7, 7)
    assert view.lts.tolist() == [3, 3, 3, 7, 7, 7, 7]
    assert view.lte.tolist() == [7] * 7
    assert view.uts.tolist() == [0] * 7
    assert view.ute.tolist() == [0, 0, 0, 3, 3, 3, 3]
    assert not view.causal


def test_flashmask_columns_of_shared_demonstrations():
    """Documents 2, 3 and 2: the first two are hidden from each other, the last sees all."""
    view = flashmask.lower(draw_mask("causal_blockwise", 7, documents=[2, 3, 2]).slices, 7, 7)
    assert view.lts.tolist() == [2, 2, 7, 7, 7, 7, 7]
    assert view.lte.tolist() == [5, 5, 7, 7, 7, 7, 7]
    assert view.causal


def test_flashmask_says_which_key_is_hidden_twice():
    slices = [Slice(0, 1, 0, 9, "full"), Slice(3, 4, 0, 9, "full"), Slice(6, 7, 0, 9, "full")]
    with pytest.raises(ViewUnavailable, match="key 0 is hidden from two runs of queries below the diagonal"):
        flashmask.lower(slices, 9, 9)
