"""Numbers with units, as configs write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longca.units import Heads, parse_duration, parse_heads, parse_tokens


@pytest.mark.parametrize(
    ("written", "tokens"), [(1, 1), ("1", 1), (2048, 2048), ("2k", 2048), ("48k", 49152), ("1M", 1048576)]
)
def test_tokens_are_binary_thousands(written: object, tokens: int) -> None:
    assert parse_tokens(written) == tokens


@pytest.mark.parametrize(
    "written", ["", "k", "8kb", "8K", "8 k", "-1", 0, "0k", -5, 5.0, 1.5, True, None, "1e3", "٣"]
)
def test_no_tokens(written: object) -> None:
    with pytest.raises(ValueError, match="is no number of tokens; allowed: a whole number above 0"):
        parse_tokens(written)


@given(st.integers(1, 10**9))
def test_tokens_written_out_are_themselves(tokens: int) -> None:
    assert parse_tokens(tokens) == parse_tokens(str(tokens)) == tokens
    assert parse_tokens(f"{tokens}k") == 1024 * tokens


@pytest.mark.parametrize(
    ("written", "seconds"), [("90s", 90.0), ("8m", 480.0), ("2h", 7200.0), ("1.5m", 90.0), ("0.5s", 0.5)]
)
def test_durations_are_seconds(written: str, seconds: float) -> None:
    assert parse_duration(written) == seconds


@pytest.mark.parametrize("written", ["", "m", "8", 480, "8 m", "8min", "-1s", "0s", "1:30", "1e2s", None])
def test_no_duration(written: object) -> None:
    with pytest.raises(ValueError, match="is no duration; allowed: a number above 0 with s, m or h"):
        parse_duration(written)


def test_heads_are_query_then_key_value() -> None:
    assert parse_heads("64-8") == Heads(query=64, kv=8)
    assert str(parse_heads("28-7")) == "28-7"
    assert parse_heads(Heads(4, 2)) == (4, 2)


@pytest.mark.parametrize(
    "written", ["64", 64, "64:8", "64-", "-8", "0-0", "8-0", "64-8-2", "08-8", [64, 8], None]
)
def test_no_heads(written: object) -> None:
    with pytest.raises(ValueError, match="is no pair of heads; allowed: query heads - key-value heads"):
        parse_heads(written)


def test_key_value_heads_divide_query_heads() -> None:
    with pytest.raises(ValueError, match="the 8 key-value heads do not divide the 28 query heads"):
        parse_heads("28-8")
