"""Histograms of document lengths: the published ones, and the lengths file with each way it can be wrong."""

from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longca.data.histogram import (
    PUBLISHED,
    Histogram,
    histogram_of_lengths,
    published_histogram,
    read_histogram,
    write_histogram,
)
from longca.data.summary import summarize
from longca.errors import LongcaError

HEADER = "lower_tokens,upper_tokens,probability,documents\n"


@pytest.mark.parametrize(
    ("name", "bins", "first", "last", "largest_weight"),
    [
        ("pile", 41, (0, 32), (14208, 9323168), 0.071745),
        ("prolong64k", 44, (0, 64), (50272, 61920), 0.057541),
        ("prolong512k", 42, (0, 32), (10912, 475872), 0.062776),
    ],
)
def test_published_figures(
    name: str, bins: int, first: tuple[int, int], last: tuple[int, int], largest_weight: float
) -> None:
    histogram = published_histogram(name)
    assert len(histogram.bins) == len(histogram.weights) == bins
    assert (histogram.bins[0], histogram.bins[-1]) == (first, last)
    assert max(histogram.weights) == largest_weight
    assert all(
        upper == lower for (_, upper), (lower, _) in zip(histogram.bins, histogram.bins[1:], strict=False)
    )
    assert set(histogram.documents) == {None}


def test_unknown_published_name_says_which_there_are() -> None:
    with pytest.raises(LongcaError, match="'piles' is not a published dataset; did you mean 'pile'"):
        published_histogram("piles")


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_histogram_survives_writing_and_reading(name: str, tmp_path: Path) -> None:
    path = tmp_path / "new" / f"{name}.csv"
    write_histogram(path, published_histogram(name))
    assert path.read_text().startswith(HEADER)
    assert read_histogram(path) == published_histogram(name)


@settings(deadline=None)
@given(st.dictionaries(st.integers(1, 10**7), st.integers(1, 10**9), min_size=1, max_size=30))
def test_counted_histogram_survives_writing_and_reading(
    tmp_path_factory: pytest.TempPathFactory, lengths: dict[int, int]
) -> None:
    path = tmp_path_factory.mktemp("lengths") / "mine.csv"
    histogram = histogram_of_lengths(Counter(lengths))
    write_histogram(path, histogram)
    assert read_histogram(path) == histogram
    assert {
        lower: count for (lower, _), count in zip(histogram.bins, histogram.documents, strict=True)
    } == lengths
    assert all(lower == upper for lower, upper in histogram.bins)
    assert sum(histogram.weights) == pytest.approx(1)


def test_counted_file_to_the_letter(tmp_path: Path) -> None:
    write_histogram(tmp_path / "a.csv", histogram_of_lengths(Counter({7: 1, 3: 3})))
    assert (tmp_path / "a.csv").read_text() == HEADER + "3,3,0.75,3\n7,7,0.25,1\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "line 1: the header must be lower_tokens,upper_tokens,probability,documents, found nothing"),
        ("lower,upper,probability,documents\n", "line 1: the header must be"),
        (HEADER, "holds no lengths"),
        (HEADER + "1,2,1.0\n", "line 2: 3 values, expected 4"),
        (HEADER + "1,2,0.5,\n3,x,0.5,\n", "line 3: upper_tokens 'x' is no whole number"),
        (HEADER + "-1,2,1.0,\n", "line 2: lower_tokens '-1' is no whole number"),
        (HEADER + "1.5,2,1.0,\n", "line 2: lower_tokens '1.5' is no whole number"),
        (HEADER + "5,4,1.0,\n", "line 2: upper_tokens 4 must be at least 1 and not below lower_tokens 5"),
        (HEADER + "0,0,1.0,\n", "line 2: upper_tokens 0 must be at least 1"),
        (HEADER + "1,2,nan,\n", "line 2: probability 'nan' is no number from 0 to 1"),
        (HEADER + "1,2,1.5,\n", "line 2: probability '1.5' is no number from 0 to 1"),
        (HEADER + "1,2,-0.5,\n3,4,1.0,\n", "line 2: probability '-0.5'"),
        (HEADER + "1,2,0.5,\n3,4,0.4,\n", "the probabilities add up to 0.9, expected 1"),
        (HEADER + "1,1,1.0,many\n", "line 2: documents 'many' is no whole number"),
        (HEADER + "1,1,0.5,1\n2,2,0.5,\n", "line 3: documents is empty, other lines have it"),
        (HEADER + "1,1,0.5,9\n2,2,0.5,1\n", "line 2: probability 0.5 contradicts 9 of 10 documents"),
    ],
)
def test_a_wrong_lengths_file_is_named_with_its_line(content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "lengths.csv"
    path.write_text(content)
    with pytest.raises(LongcaError) as caught:
        read_histogram(path)
    assert str(path) in str(caught.value)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_unreadable_lengths_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00")
    for name in ("binary.csv", "absent.csv"):
        with pytest.raises(LongcaError, match=f"{name}: cannot be read"):
            read_histogram(tmp_path / name)


def test_summary_of_counted_lengths_is_exact() -> None:
    summary = summarize(histogram_of_lengths(Counter({1: 4, 10: 5, 1000: 1})))
    assert (summary.documents, summary.tokens, summary.mean) == (10, 1054, 105.4)
    assert (summary.median, summary.p90, summary.longest) == (10, 10, 1000)


def test_summary_of_shares_spreads_lengths_inside_a_bin() -> None:
    summary = summarize(Histogram(bins=((0, 100), (100, 300)), weights=(0.5, 0.5), documents=(None, None)))
    assert (summary.documents, summary.tokens) == (None, None)
    assert (summary.mean, summary.median, summary.longest) == (125, 100, 300)
    assert summary.p90 == pytest.approx(260)
