"""What advice leaves out and refuses: doubles of what is ranked, lengths that nothing is said of, block-sparse maps."""

from typing import Any

import pytest
from reporting_records import record, sparse_study
from test_advise_and_project import CONFIG, measured, output, record_of  # noqa: F401
from typer.testing import CliRunner

from longca.cases import Case, study_series
from longca.cli.main import app
from longca.errors import LongcaError
from longca.reporting.advice.advising import answers
from longca.reporting.advice.question import Question
from longca.reporting.collect import CaseRecord
from longca.reporting.long import Row, long_row
from longca.reporting.scale.lengths import MOST
from longca.study.loading import check_study
from longca.study.model import Study
from longca.units import Heads


def on_two_ranks(mechanisms: list[str], failed: dict[str, str] | None = None) -> list[Row]:
    """Rows of mechanisms on two ranks; failed: the status of some, by mechanism and pass."""
    config: dict[str, Any] = {
        "mechanisms": mechanisms,
        "kernels": ["segments"],
        "patterns": ["full"],
        "world_sizes": [2],
        "tokens_per_rank": ["8k"],
        "heads": ["64-8"],
    }
    shapes = {"usp": ["1x2", "2x1"], "loongtrain": ["1x2x2"]}
    config["topologies"] = {name: shapes[name] for name in mechanisms if name in shapes}
    one = check_study({"study": "tiny", "measure": {"device": "cuda"}, "context_parallel": config}, "test")
    return [
        long_row(CaseRecord(case, CONFIG, record(case, **_columns(one, case, failed or {}))))
        for series in study_series(one)
        for case in series.cases
    ]


def _columns(one: Study, case: Case, failed: dict[str, str]) -> dict[str, Any]:
    assert case.arrangement is not None
    status = failed.get(f"{case.arrangement.mechanism} {case.pass_}")
    told = record_of(one, case)
    gone = {"status": status, "reason": "no room", "environment": told["environment"]}
    return gone if status else told


def ranked(rows: list[Row], pass_: str = "both") -> list[str]:
    found = list(answers(Question("full", 16384, Heads(64, 8), pass_, 2), rows, "x"))
    return [one.name for one in found[0].choices if one.ms is not None]


def test_what_is_another_mechanism_is_not_ranked_beside_it() -> None:
    every = ["ulysses", "ring_p2p", "ring_allgather", "usp", "loongtrain"]
    for pass_ in ("forward", "backward", "both"):
        assert set(ranked(on_two_ranks(every), pass_)) == {"ulysses", "ring_p2p", "ring_allgather"}


def test_it_is_ranked_where_what_it_is_was_not_measured() -> None:
    assert set(ranked(on_two_ranks(["ulysses", "usp", "loongtrain"]))) == {
        "ulysses",
        "usp 1x2 = ring_p2p",
        "loongtrain 1x2x2 = ring_p2p",
    }


@pytest.mark.parametrize("pass_", ["forward", "backward"])
def test_it_is_ranked_where_what_it_is_failed_in_one_pass(pass_: str) -> None:
    rows = on_two_ranks(["ring_p2p", "usp"], {f"ring_p2p {pass_}": "out_of_memory"})
    assert "usp 1x2 = ring_p2p" in ranked(rows)


@pytest.mark.parametrize(
    ("words", "option"),
    [
        ("advise --pattern full --seqlen 100 --gpus 128", "--seqlen"),
        ("advise --pattern full --seqlen 1 --gpus 2", "--seqlen"),
        ("advise --pattern full --seqlen 200 --gpus 128", "--seqlen"),
        ("advise --pattern full --seqlen 999999M --gpus 128", "--seqlen"),
        (f"advise --pattern causal_document --seqlen {MOST + 1} --gpus 2", "--seqlen"),
        ("project --pattern full --gpus 7 --tokens 1", "--tokens"),
        ("project --pattern full --gpus 8 --tokens 127", "--tokens"),
        ("project --pattern causal_document --gpus 64 --tokens 1000M", "--tokens"),
        (f"project --pattern full --gpus {MOST // 8192 + 1} --tokens 8k", "--tokens"),
    ],
)
def test_a_length_of_which_nothing_is_said_is_refused_in_a_line(
    measured: Study,  # noqa: F811
    words: str,
    option: str,
) -> None:
    refused = CliRunner().invoke(app, [*words.split(), "--study", "tiny.yaml"])
    assert isinstance(refused.exception, LongcaError), refused.output
    said = str(refused.exception)
    assert said.startswith(f"{option}: ") and "; allowed: " in said and "\n" not in said


def test_the_least_and_the_most_are_answered_with_a_throughput(measured: Study) -> None:  # noqa: F811
    for tokens, gpus in (("128", "2"), ("128", "64"), (f"{MOST // 1024}", "1024")):
        said = output(
            "project", "--pattern", "full", "--gpus", gpus, "--tokens", tokens, "--study", "tiny.yaml"
        )
        lines = [line.split() for line in said.splitlines() if line.startswith("ring_p2p")]
        assert float(lines[0][2]) > 0


@pytest.mark.parametrize("pattern", ["uniform_block", "variable_block"])
@pytest.mark.parametrize("words", ["advise --seqlen 8k", "advise --seqlen 8k --gpus 4", "project --gpus 4"])
def test_of_block_sparse_patterns_it_says_where_their_numbers_stand(
    measured: Study,  # noqa: F811
    pattern: str,
    words: str,
) -> None:
    refused = CliRunner().invoke(app, [*words.split(), "--pattern", pattern, "--study", "tiny.yaml"])
    assert isinstance(refused.exception, LongcaError), refused.output
    assert str(refused.exception) == (
        f"--pattern: {pattern} is block-sparse, of which there is neither advice nor a model yet; its numbers stand in "
        "the study's tables/sparse, and in words in docs/sparse.md"
    )


def test_a_study_of_blocks_alone_says_so_too() -> None:
    sparse = [
        long_row(CaseRecord(case, CONFIG, record(case)))
        for series in study_series(sparse_study())
        for case in series.cases
    ]
    with pytest.raises(LongcaError, match="uniform_block is block-sparse"):
        list(answers(Question("uniform_block", 8192, Heads(64, 8), "both"), sparse, "x"))
