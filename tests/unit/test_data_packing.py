"""Packed samples: the published random stream, value for value, and what holds for every histogram."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longca.data.histogram import Histogram, published_histogram
from longca.data.packing import (
    base_dataset,
    draw_documents,
    draw_long_documents,
    resolve_dataset,
    sample_documents,
)
from longca.errors import LongcaError

PILE_1024 = [353, 559, 102, 10]
PILE_8192 = [353, 559, 102, 421, 322, 13, 129, 314, 113, 768, 618, 469, 141, 3608, 88, 86, 88]
PROLONG64K_16384 = [
    *(
        545,
        719,
        166,
        581,
        482,
        27,
        161,
        474,
        177,
        864,
        778,
        661,
        205,
        2476,
        120,
        118,
        482,
        679,
        4167,
        82,
        974,
    ),
    *(452, 78, 805, 111),
]


@pytest.mark.parametrize(
    ("dataset", "seqlen", "documents"),
    [("pile", 1024, PILE_1024), ("pile", 8192, PILE_8192), ("prolong64k", 16384, PROLONG64K_16384)],
)
def test_golden_documents(dataset: str, seqlen: int, documents: list[int]) -> None:
    assert draw_documents(random.Random(42), published_histogram(dataset), seqlen) == documents


@pytest.mark.parametrize(
    ("seqlen", "dataset", "count", "full_cells", "causal_cells"),
    [
        (8192, "pile", 17, 15108732, 7558462),
        (16384, "prolong64k", 25, 29567096, 14791740),
        (32768, "prolong64k", 59, 42185234, 21109001),
        (49152, "prolong64k", 77, 67918544, 33983848),
        (65536, "prolong64k", 80, 269957288, 135011412),
    ],
)
def test_golden_samples_of_auto(
    seqlen: int, dataset: str, count: int, full_cells: int, causal_cells: int
) -> None:
    resolved = resolve_dataset("auto", seqlen)
    assert resolved == dataset
    documents = sample_documents(random.Random(42), resolved, published_histogram(resolved), seqlen)
    assert len(documents) == count
    assert sum(length * length for length in documents) == full_cells
    assert sum(length * (length + 1) // 2 for length in documents) == causal_cells


def test_golden_long_sample() -> None:
    resolved = resolve_dataset("auto", 65536, context_parallel=True)
    assert (resolved, base_dataset(resolved)) == ("prolong512k_long", "prolong512k")
    documents = sample_documents(random.Random(42), resolved, published_histogram("prolong512k"), 65536)
    assert len(documents) == 52
    assert documents[:6] == [134, 88, 173, 285, 145, 825]
    assert sum(length * length for length in documents) == 809184696


@pytest.mark.parametrize(
    ("dataset", "seqlen", "resolved"),
    [
        ("auto", 1, "pile"),
        ("auto", 12288, "pile"),
        ("auto", 12289, "prolong64k"),
        ("auto", 65536, "prolong64k"),
        ("auto", 65537, "prolong512k"),
        ("pile", 10**6, "pile"),
        ("mine", 5, "mine"),
    ],
)
def test_auto_is_the_papers_choice_by_length(dataset: str, seqlen: int, resolved: str) -> None:
    assert resolve_dataset(dataset, seqlen) == resolved


def test_context_parallel_takes_long_samples_at_every_length() -> None:
    assert {resolve_dataset("auto", seqlen, True) for seqlen in (1, 8192, 10**6)} == {"prolong512k_long"}
    assert resolve_dataset("pile", 8192, context_parallel=True) == "pile"


def test_a_sequence_has_a_token() -> None:
    with pytest.raises(LongcaError, match="seqlen 0"):
        resolve_dataset("auto", 0)


@st.composite
def histograms(draw: st.DrawFn) -> Histogram:
    """Any histogram: wide bins, single lengths, bins that start at 0, shares of any size."""
    bins = draw(
        st.lists(
            st.tuples(st.integers(0, 500), st.integers(0, 500)).map(lambda pair: (min(pair), max(1, *pair))),
            min_size=1,
            max_size=8,
        )
    )
    weights = draw(st.lists(st.floats(0.001, 1), min_size=len(bins), max_size=len(bins)))
    return Histogram(tuple(bins), tuple(weights), (None,) * len(bins))


@settings(deadline=None)
@given(histograms(), st.integers(1, 5000), st.integers(0, 2**32))
def test_documents_fill_the_sequence(histogram: Histogram, seqlen: int, seed: int) -> None:
    for draw in (draw_documents, draw_long_documents):
        documents = draw(random.Random(seed), histogram, seqlen)
        assert sum(documents) == seqlen
        assert min(documents) >= 1
        assert draw(random.Random(seed), histogram, seqlen) == documents


@settings(deadline=None)
@given(histograms(), st.integers(1, 5000), st.integers(0, 2**32))
def test_all_but_the_cut_document_lie_in_a_bin(histogram: Histogram, seqlen: int, seed: int) -> None:
    *whole, _ = draw_documents(random.Random(seed), histogram, seqlen)
    assert all(any(max(1, lower) <= length <= upper for lower, upper in histogram.bins) for length in whole)


@settings(deadline=None)
@given(st.integers(1, 2000), st.integers(1, 10**4), st.integers(0, 2**32))
def test_a_corpus_of_one_length_gives_that_length(length: int, seqlen: int, seed: int) -> None:
    one = Histogram(((length, length),), (1.0,), (3,))
    documents = draw_documents(random.Random(seed), one, seqlen)
    assert documents == [length] * (seqlen // length) + ([seqlen % length] if seqlen % length else [])


def test_a_long_sample_has_its_share_of_long_documents() -> None:
    documents = draw_long_documents(random.Random(1), Histogram(((5, 5),), (1.0,), (None,)), 100_000)
    assert documents.count(5) == 8000
    assert sum(length for length in documents if length != 5) == 60_000
    assert sorted(documents, reverse=True)[0] >= 8192
    assert documents != sorted(documents)


def test_a_share_of_zero_is_never_drawn() -> None:
    histogram = Histogram(((3, 3), (7, 7), (9, 9)), (0.0, 1.0, 0.0), (None,) * 3)
    assert set(draw_documents(random.Random(0), histogram, 7 * 500)) == {7}
