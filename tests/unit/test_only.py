"""`--only`: which cases of a study are meant, and what is said where none are."""

import pytest

from longca.cli.only import choose
from longca.errors import LongcaError
from longca.study.loading import check_study

GRID = {
    "kernels": ["naive", "sdpa"],
    "patterns": ["causal", "full"],
    "seqlens": [64, "1k"],
    "heads": ["4-2", "4-4"],
}
STUDY = {"study": "tiny", "measure": {"device": "cpu"}, "dense": GRID}


@pytest.mark.parametrize(
    ("only", "series", "cases"),
    [
        (None, 8, 32),
        (["kernel=sdpa"], 4, 16),
        (["kernel=sdpa,pattern=full,heads=4-4"], 1, 4),
        (["seqlen=1k"], 8, 16),
        (["seqlen=1024,pass=forward"], 8, 8),
        (["kernel=naive,seqlen=64,pass=backward", "kernel=sdpa,pattern=causal"], 6, 12),
    ],
)
def test_only_names_series_and_cases(only: list[str] | None, series: int, cases: int) -> None:
    chosen = choose(check_study(STUDY, "tiny.yaml"), only)
    assert (len(chosen), sum(len(one.cases) for one in chosen)) == (series, cases)


@pytest.mark.parametrize(
    ("only", "words"),
    [
        ("kernel=flex", "--only kernel=flex: no case of study tiny is meant; it has 8 series"),
        ("seqlen=2k", "no case of study tiny is meant"),
        ("seqlens=1k", "'seqlens' is not a key of a series or case; did you mean 'seqlen'?"),
        ("seqlen=8kb", "--only seqlen=8kb: seqlen: '8kb' is no number of tokens"),
        ("kernel=naive,seqlen=64,kernel=sdpa", "kernel stands there twice; right: an --only for each value"),
        ("kernel=", "kernel has no value; right: key=value"),
        ("", "'' is not a key of a series or case"),
    ],
)
def test_only_that_means_nothing_is_a_mistake(only: str, words: str) -> None:
    with pytest.raises(LongcaError) as caught:
        choose(check_study(STUDY, "tiny.yaml"), [only])
    assert words in str(caught.value)
