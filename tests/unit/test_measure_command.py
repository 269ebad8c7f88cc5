"""`longca measure --only`: which cases of a study are meant, and what is said where none are."""

from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from longca.cli import measure
from longca.cli.main import app
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
        ([], 8, 32),
        (["kernel=sdpa"], 4, 16),
        (["kernel=sdpa,pattern=full,heads=4-4"], 1, 4),
        (["seqlen=1k"], 8, 16),
        (["seqlen=1024,pass=forward"], 8, 8),
        (["kernel=naive,seqlen=64,pass=backward", "kernel=sdpa,pattern=causal"], 6, 12),
    ],
)
def test_only_names_series_and_cases(only: list[str], series: int, cases: int) -> None:
    chosen = measure._choose(check_study(STUDY, "tiny.yaml"), only)
    assert (len(chosen), sum(len(one.cases) for one in chosen)) == (series, cases)


@pytest.mark.parametrize(
    ("only", "words"),
    [
        ("kernel=flex", "--only kernel=flex: no case of study tiny is meant; it has 8 series"),
        ("seqlen=2k", "no case of study tiny is meant"),
        ("seqlens=1k", "'seqlens' is not a key of a series or case; did you mean 'seqlen'?"),
        ("seqlen=8kb", "--only seqlen=8kb: seqlen: '8kb' is no number of tokens"),
        ("kernel=", "kernel has no value; right: key=value"),
    ],
)
def test_only_that_means_nothing_is_a_mistake(only: str, words: str) -> None:
    with pytest.raises(LongcaError) as caught:
        measure._choose(check_study(STUDY, "tiny.yaml"), [only])
    assert words in str(caught.value)


@pytest.mark.parametrize("command", [["measure"], ["compile", "--processes", "2"], ["repeat"]])
def test_nothing_of_a_frozen_study_is_measured(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("tiny.yaml").write_text(yaml.safe_dump({**STUDY, "frozen": True}))
    result = CliRunner().invoke(app, [*command, "--study", "tiny.yaml"])
    assert isinstance(result.exception, LongcaError)
    assert str(result.exception) == (
        "tiny.yaml: study tiny is frozen: its records are inputs, nothing of it is measured; "
        "right: frozen: false, which goes on from them"
    )
    assert not Path("results").exists()
