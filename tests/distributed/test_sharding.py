"""Shards and restricted masks, of any mask and any number of ranks; no processes."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from longca.errors import LongcaError
from longca.masks.mask import draw_mask
from longca.masks.patterns import PATTERNS
from longca.masks.slices import Slice
from longca.parallel.balance import deal_chunks
from longca.parallel.sharding import SHARDINGS, shard_sequence
from longca.parallel.shards import Piece, Shard, joined, place, scatter
from longca.parallel.work import imbalance, local_slices, shard_areas


def kept(slices, queries, keys):
    """The cells slices keep, counted, from the definition alone."""
    cells = np.zeros((queries, keys), int)
    for q0, q1, k0, k1, kind in slices:
        r, c = np.arange(q1 - q0)[:, None], np.arange(k1 - k0)
        below = c <= r + (k1 - k0) - (q1 - q0) if kind in ("causal", "bi_causal") else True
        above = c >= r if kind in ("inv_causal", "bi_causal") else True
        cells[q0:q1, k0:k1] += np.broadcast_to(below & np.asarray(above), (q1 - q0, k1 - k0))
    return cells


@st.composite
def masks(draw):
    pattern = PATTERNS[draw(st.sampled_from(sorted(PATTERNS)))]
    seqlen = draw(st.integers(1, 90))
    parameters = {name: draw(st.integers(1, seqlen + 1)) for name in pattern.parameters}
    cuts = sorted(draw(st.lists(st.integers(0, seqlen), max_size=5)))
    documents = (
        np.diff(np.array(cuts, int), prepend=0, append=seqlen).tolist() if pattern.has_documents else None
    )
    return draw_mask(pattern.name, seqlen, parameters=parameters, documents=documents)


def rows_of(shard):
    """The token of each row, -1 for padding."""
    return [
        token for piece in shard.pieces for token in (*range(piece.begin, piece.end), *[-1] * piece.padding)
    ]


schemes, rings = st.sampled_from(sorted(SHARDINGS)), st.integers(1, 9)


@settings(max_examples=200, deadline=None)
@given(masks(), schemes, rings)
def test_every_token_is_in_one_shard_and_its_work_with_it(mask, scheme, ring):
    shards = shard_sequence(scheme, ring, mask.seqlen, mask.slices, mask.documents).shards
    rows = [rows_of(shard) for shard in shards]
    assert [shard.rows for shard in shards] == [len(row) for row in rows]
    assert sorted(token for row in rows for token in row if token >= 0) == list(range(mask.seqlen))
    assert all(row == sorted(row) for row in ([t for t in row if t >= 0] for row in rows))
    cells = kept(mask.slices, mask.seqlen, mask.seqlen)
    areas = shard_areas(mask.slices, mask.seqlen, shards)
    assert areas == [int(cells[[t for t in row if t >= 0]].sum()) for row in rows]
    assert imbalance(mask.slices, mask.seqlen, shards) == pytest.approx(max(areas) * ring / sum(areas))


@settings(max_examples=150, deadline=None)
@given(masks(), schemes, rings, st.data())
def test_local_slices_are_the_mask_between_two_shards(mask, scheme, ring, data):
    shards = shard_sequence(scheme, ring, mask.seqlen, mask.slices, mask.documents).shards
    queries, keys = (shards[data.draw(st.integers(0, ring - 1))] for _ in range(2))
    offset = data.draw(st.integers(0, 5))
    got = kept(local_slices(mask.slices, queries, keys, offset), queries.rows, offset + keys.rows)
    assert not got[:, :offset].any()
    whole = kept(mask.slices, mask.seqlen, mask.seqlen)
    bordered = np.zeros((mask.seqlen + 1, mask.seqlen + 1), int)  # row and column -1: what padding keeps
    bordered[:-1, :-1] = whole
    want = bordered[np.array(rows_of(queries), int)][:, np.array(rows_of(keys), int)]
    assert (got[:, offset:] == want).all()


@settings(max_examples=150, deadline=None)
@given(masks(), schemes, rings, st.integers(1, 5))
def test_parts_of_a_shard_follow_one_another(mask, scheme, ring, parts):
    for shard in shard_sequence(scheme, ring, mask.seqlen, mask.slices, mask.documents).shards:
        spans = shard.spans(parts)
        pieces = [shard.cut(*span) for span in spans]
        assert [token for piece in pieces for token in rows_of(piece)] == rows_of(shard)
        assert [piece.rows for piece in pieces] == [end - begin for begin, end in spans]
        assert max(piece.rows for piece in pieces) - min(piece.rows for piece in pieces) <= 1


@settings(max_examples=60, deadline=None)
@given(masks(), schemes, rings)
def test_placing_what_was_scattered_gives_it_back(mask, scheme, ring):
    whole = torch.arange(2.0 * mask.seqlen).view(2, mask.seqlen) + 1
    back = torch.zeros_like(whole)
    for shard in shard_sequence(scheme, ring, mask.seqlen, mask.slices, mask.documents).shards:
        local = scatter(whole, shard)
        assert int((local == 0).sum()) == 2 * shard.padding
        place(local, shard, back)
    assert (back == whole).all()


def test_contiguous_and_zigzag_where_nothing_divides():
    def pieces(scheme, ring, seqlen):
        return [[p[:2] for p in s.pieces] for s in shard_sequence(scheme, ring, seqlen, []).shards]

    assert pieces("contiguous", 3, 10) == [[(0, 3)], [(3, 6)], [(6, 10)]]
    assert pieces("zigzag", 2, 8) == [[(0, 2), (6, 8)], [(2, 6)]]
    assert pieces("zigzag", 1, 7) == [[(0, 7)]]
    assert pieces("contiguous", 3, 2) == [[], [(0, 1)], [(1, 2)]]


def test_document_zigzag_pads_each_document_to_2r_chunks():
    shards = shard_sequence("document_zigzag", 2, 15, [], [8, 0, 7]).shards
    assert shards[0].pieces == (Piece(0, 2), Piece(6, 8 + 2), Piece(14, 15, 1))
    assert shards[1].pieces == (Piece(2, 6), Piece(10, 14))
    # A document of one token is one chunk of a token and three of padding.
    shards = shard_sequence("document_zigzag", 2, 1, [], [1]).shards
    assert [(shard.rows, shard.padding) for shard in shards] == [(2, 1), (2, 2)]


def test_zigzag_balances_causal_and_balanced_any_mask():
    seqlen, ring = 4096, 8
    causal = [Slice(0, seqlen, 0, seqlen, "causal")]
    by_scheme = {
        scheme: imbalance(causal, seqlen, shard_sequence(scheme, ring, seqlen, causal).shards)
        for scheme in SHARDINGS
    }
    assert by_scheme["contiguous"] > 1.8
    assert by_scheme["zigzag"] == by_scheme["document_zigzag"] == pytest.approx(1)
    assert by_scheme["balanced"] < 1.01
    documents = (2500, 7, 300, 1, 900, 388)
    for pattern in PATTERNS:
        chosen = documents if PATTERNS[pattern].has_documents else None
        mask = draw_mask(pattern, seqlen, documents=chosen, parameters={})
        shards = shard_sequence("balanced", ring, seqlen, mask.slices, mask.documents).shards
        assert imbalance(mask.slices, seqlen, shards) < 1.03, pattern
        assert max(s.rows for s in shards) <= 1.3 * seqlen / ring, pattern


def test_a_few_heavy_rows_are_spread_over_the_ranks():
    # 1,024 global tokens of 65,536 hold a quarter of the work: whole tiles of them go to each of 8 ranks.
    mask = draw_mask("global_sliding", 65536)
    shards = shard_sequence("balanced", 8, mask.seqlen, mask.slices).shards
    assert imbalance(mask.slices, mask.seqlen, shards) < 1.03
    assert all(shard.pieces[0].begin < 1024 for shard in shards)
    assert all(piece.begin % 128 == piece.end % 128 == 0 for shard in shards for piece in shard.pieces)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 1000), st.integers(1, 8)), min_size=1, max_size=40), st.integers(1, 9)
)
def test_no_rank_is_dealt_many_more_rows_than_the_mean(chunks, ranks):
    areas, rows = zip(*chunks, strict=True)
    owners = deal_chunks(areas, rows, ranks)
    assert len(owners) == len(chunks)
    held = [sum(n for n, owner in zip(rows, owners, strict=True) if owner == r) for r in range(ranks)]
    assert sum(held) == sum(rows)
    assert max(held) <= 1.25 * sum(rows) / ranks + max(rows)


def test_equal_chunks_are_dealt_equally():
    for count, ranks in ((16, 4), (17, 4), (3, 8)):
        owners = deal_chunks([5] * count, [2] * count, ranks)
        held = [owners.count(rank) for rank in range(ranks)]
        assert max(held) - min(held) <= 1


def test_a_mask_that_keeps_nothing_is_in_balance():
    shards = shard_sequence("balanced", 3, 10, []).shards
    assert imbalance([], 10, shards) == 1.0
    assert sum(shard.rows for shard in shards) == 10


def test_many_documents_stay_linear():
    # 2,000 documents on 8 ranks: two chunks of each meet at most two of the same, whatever the others are.
    documents = [64] * 2000
    slices = [Slice(64 * i, 64 * i + 64, 64 * i, 64 * i + 64, "causal") for i in range(2000)]
    shards = shard_sequence("document_zigzag", 8, 128_000, slices, documents).shards
    assert len(local_slices(slices, shards[3], shards[3])) == 2000 * 3
    assert len(local_slices(slices, shards[3], shards[5])) == 2000 * 2


def test_joined_drops_what_is_empty_and_joins_neighbours():
    assert joined([Piece(0, 2), Piece(2, 5), Piece(5, 5), Piece(5, 5, 2), Piece(5, 6)]) == Shard(
        (Piece(0, 5, 2), Piece(5, 6))
    )


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("zig_zag", 2, 8, []), "did you mean 'zigzag'"),
        (("zigzag", 2, 8, [], [3, 4]), "add up to 7 tokens; must add up to seqlen 8"),
    ],
)
def test_mistakes_are_named(arguments, says):
    with pytest.raises(LongcaError, match=says):
        shard_sequence(*arguments)
