"""The slice algebra against its definition, cell by cell."""

import hashlib
import struct

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from masks_strategy import bands, cells, slice_lists

from longca.errors import LongcaError
from longca.masks.slices import (
    TYPES,
    Slice,
    area,
    band,
    restrict,
    row_intervals,
    slice_area,
    slices_digest,
    validate_slices,
)


@pytest.mark.parametrize("kind", TYPES)
@settings(deadline=None)
@given(queries=st.integers(0, 9), keys=st.integers(0, 9))
def test_area_of_a_slice_counts_its_cells(kind, queries, keys):
    piece = Slice(0, queries, 0, keys, kind)
    assert slice_area(piece) == cells([piece], queries, keys).sum()


@settings(deadline=None)
@given(slice_lists())
def test_area_of_a_mask_counts_its_cells(drawn):
    slices, queries, keys = drawn
    assert area(slices) == cells(slices, queries, keys).sum()


@settings(deadline=None)
@given(bands())
def test_band_keeps_what_lies_between_its_bounds(drawn):
    (q0, q1, k0, k1, left, right), queries, keys = drawn
    i, j = np.arange(queries)[:, None], np.arange(keys)
    right_cells = (i >= q0) & (i < q1) & (j >= k0) & (j < k1)
    if left is not None:
        right_cells &= j >= i + left
    if right is not None:
        right_cells &= j <= i + right
    slices = band(q0, q1, k0, k1, left, right)
    assert len(slices) <= 3
    assert (cells(slices, queries, keys) == right_cells).all()
    kept_rows = [row for piece in slices for row in range(piece.q0, piece.q1)]
    assert kept_rows == np.flatnonzero(right_cells.any(1)).tolist()


@settings(deadline=None)
@given(slice_lists(), st.data())
def test_slices_restricted_to_a_rectangle_are_its_slices(drawn, data):
    slices, queries, keys = drawn
    q0, q1 = sorted(data.draw(st.tuples(st.integers(0, queries), st.integers(0, queries))))
    k0, k1 = sorted(data.draw(st.tuples(st.integers(0, keys), st.integers(0, keys))))
    inside = restrict(slices, q0, q1, k0, k1)
    validate_slices(inside, q1 - q0, k1 - k0)
    assert (cells(inside, q1 - q0, k1 - k0) == cells(slices, queries, keys)[q0:q1, k0:k1]).all()


@pytest.mark.parametrize("transpose", [False, True])
@settings(deadline=None)
@given(drawn=slice_lists())
def test_row_intervals_are_the_runs_of_each_row(transpose, drawn):
    slices, queries, keys = drawn
    dense = cells(slices, queries, keys).T if transpose else cells(slices, queries, keys)
    edges = np.diff(np.pad(dense.astype(int), ((0, 0), (1, 1))), axis=1)
    found = row_intervals(slices, queries, keys, transpose=transpose)
    assert (found.rows, found.columns) == dense.shape
    assert found.row.tolist() == np.nonzero(edges == 1)[0].tolist()
    assert found.low.tolist() == np.nonzero(edges == 1)[1].tolist()
    assert found.high.tolist() == np.nonzero(edges == -1)[1].tolist()
    low, high = found.layers()
    assert low.shape == high.shape == (max(1, (edges == 1).sum(1).max()), len(dense))
    column = np.arange(dense.shape[1])
    assert (((column >= low[..., None]) & (column < high[..., None])).any(0) == dense).all()


@settings(deadline=None)
@given(slice_lists(), st.randoms(use_true_random=False))
def test_digest_depends_on_the_cells_alone(drawn, rng):
    slices, queries, keys = drawn
    digest = slices_digest(slices, queries, keys)
    by_row = [
        Slice(row, row + 1, piece.k0, piece.k1, piece.type)
        for row in range(queries)
        for piece in restrict(slices, row, row + 1, 0, keys)
    ]
    rng.shuffle(by_row)
    assert slices_digest(by_row, queries, keys) == digest
    assert slices_digest(slices, queries + 1, keys) != digest
    assume(area(slices))
    kept = max(slices, key=slice_area)
    assert slices_digest([piece for piece in slices if piece != kept], queries, keys) != digest


def test_digest_is_over_size_rows_and_bounds():
    content = b"2 3\n" + struct.pack("<2q 2q 2q", 0, 1, 0, 0, 2, 3)
    assert slices_digest([Slice(0, 2, 0, 3, "causal")], 2, 3) == hashlib.sha256(content).hexdigest()


@settings(deadline=None)
@given(slice_lists())
def test_validate_accepts_disjoint_slices(drawn):
    validate_slices(*drawn)


@settings(deadline=None)
@given(slice_lists(), st.data())
def test_validate_finds_any_shared_cell(drawn, data):
    slices, queries, keys = drawn
    q0, k0 = data.draw(st.integers(0, queries - 1)), data.draw(st.integers(0, keys - 1))
    extra = Slice(q0, queries, k0, keys, data.draw(st.sampled_from(TYPES)))
    shared = (cells(slices, queries, keys) & cells([extra], queries, keys)).any()
    place = data.draw(st.integers(0, len(slices)))
    joined = [*slices[:place], extra, *slices[place:]]
    if shared:
        with pytest.raises(LongcaError, match="both keep query"):
            validate_slices(joined, queries, keys)
    else:
        validate_slices(joined, queries, keys)


def test_validate_names_the_shared_cell_of_a_long_mask():
    seqlen = 6_000_000
    slices = [
        Slice(0, seqlen, 0, seqlen, "causal"),
        Slice(seqlen - 5, seqlen - 4, seqlen - 9, seqlen, "full"),
    ]
    with pytest.raises(LongcaError, match=f"query {seqlen - 5}, key {seqlen - 9};"):
        validate_slices(slices, seqlen, seqlen)


@pytest.mark.parametrize(
    ("piece", "message"),
    [
        (Slice(0, 4, 0, 3, "full"), "inside 3 queries x 3 keys"),
        (Slice(0, 3, 0, 4, "full"), "inside 3 queries x 3 keys"),
        (Slice(-1, 3, 0, 3, "full"), "inside 3 queries x 3 keys"),
        (Slice(2, 1, 0, 3, "full"), "inside 3 queries x 3 keys"),
        (Slice(0, 3, 0, 3, "diagonal"), "'diagonal' is none of full, causal, inv_causal, bi_causal"),
    ],
)
def test_validate_refuses_what_is_no_slice_of_the_mask(piece, message):
    with pytest.raises(LongcaError, match=message):
        validate_slices([Slice(0, 1, 0, 1, "full"), piece], 3, 3)
