"""Advice: kernels and mechanisms ranked by measured time, what has no number last, what is modelled marked."""

from pathlib import Path

import pytest
from reporting_records import dense_study, record, write_records

from longca.cases import Case, study_series
from longca.errors import LongcaError
from longca.reporting.advice.advising import kernel_answers, mechanism_answers
from longca.reporting.advice.answer import Answer
from longca.reporting.advice.question import Question, nearest
from longca.reporting.advice.sections import advice_section
from longca.reporting.collect import CaseRecord
from longca.reporting.long import Row, long_row
from longca.units import Heads

HEADS = Heads(4, 2)
STUDY = dense_study(
    kernels=["naive", "sdpa", "segments"],
    seqlens=[512, 2048],
    passes=["forward", "backward"],
    patterns=["causal"],
)
# Milliseconds at p50 by kernel and pass.
TIMES = {
    ("naive", "forward"): 8.0,
    ("naive", "backward"): 20.0,
    ("sdpa", "forward"): 2.0,
    ("sdpa", "backward"): 9.0,
    ("segments", "forward"): 4.0,
    ("segments", "backward"): 6.0,
}


def rows(**changes: dict[str, object]) -> list[Row]:
    """Long rows of the study; `changes` by kernel, on top of the times of TIMES."""
    return [
        long_row(CaseRecord(case, Path("x.jsonl"), record(case, **_columns(case, changes))))
        for series in study_series(STUDY)
        for case in series.cases
    ]


def _columns(case: Case, changes: dict[str, dict[str, object]]) -> dict[str, object]:
    ms = TIMES[case.kernel, case.pass_] * case.seqlen / 512
    return {"milliseconds": ms} | changes.get(case.kernel, {})


def answer(question: Question, found: list[Row]) -> Answer:
    (only,) = kernel_answers(question, found, "results/tiny")
    return only


@pytest.mark.parametrize(
    ("pass_", "order"),
    [
        ("forward", ["sdpa", "segments", "naive"]),
        ("backward", ["segments", "sdpa", "naive"]),
        ("both", ["segments", "sdpa", "naive"]),
    ],
)
def test_kernels_are_ranked_by_the_time_of_the_passes_asked_for(pass_: str, order: list[str]) -> None:
    choices = answer(Question("causal", 512, HEADS, pass_), rows()).choices
    assert [one.name for one in choices] == order
    assert choices[0].ratio == 1.0


def test_ratio_time_and_throughput_are_of_both_passes_together() -> None:
    first, second, third = answer(Question("causal", 512, HEADS, "both"), rows()).choices
    assert (first.ms, second.ms, third.ms) == pytest.approx((10.0, 11.0, 28.0))
    assert (second.ratio, third.ratio) == pytest.approx((1.1, 2.8))
    # 4 + 10 FLOPs a cell, head and element over 10 ms.
    assert first.tflops == pytest.approx(14 * 512**2 / 4 * 4 * 64 / 10e-3 / 1e12)
    # 9.9 to 12.1 ms meets 9 to 11 ms.
    assert second.why == "level with the fastest, within the spread"
    assert third.why == "takes 2.80 times as long as segments"


def test_what_has_no_number_in_a_pass_comes_last_with_the_reason() -> None:
    found = rows(segments={"status": "out_of_memory", "reason": "64 GiB asked"})
    last = answer(Question("causal", 512, HEADS, "both"), found).choices[-1]
    assert (last.name, last.ms, last.ratio) == ("segments", None, None)
    assert last.why == "forward: out of memory: 64 GiB asked; backward: out of memory: 64 GiB asked"


def test_flags_of_a_number_are_told() -> None:
    first = answer(Question("causal", 512, HEADS, "both"), rows(segments={"flags": ["noisy"]})).choices[0]
    assert first.why == "fastest; flagged noisy"


def test_the_nearest_measured_length_is_taken_and_said() -> None:
    question = Question("causal", 4096, HEADS, "both")
    found = answer(question, rows())
    assert found.seqlen == 2048
    section = advice_section(question, found)
    assert section.note == "Measured at 2048 tokens, the length nearest to the 4096 asked for."
    assert section.rows[0][:4] == ("segments", "40.0", "0.0940", "1.00")
    assert nearest(1024, [512, 2048]) == 2048
    assert nearest(1024, []) is None


def test_each_device_has_a_ranking_of_its_own() -> None:
    found = rows(naive={"environment": {"device": "another"}})
    assert {one.device for one in kernel_answers(Question("causal", 512, HEADS, "both"), found, "x")} == {
        "a CPU, 2 threads",
        "another",
    }


@pytest.mark.parametrize(
    ("pattern", "heads", "said"),
    [
        ("casual", HEADS, "--pattern: 'casual' is not a pattern of results/tiny; did you mean 'causal'?"),
        ("causal", Heads(64, 8), "--heads: 64-8 was not measured in results/tiny; allowed: 4-2"),
    ],
)
def test_what_was_not_measured_is_refused_with_what_was(pattern: str, heads: Heads, said: str) -> None:
    with pytest.raises(LongcaError) as refused:
        kernel_answers(Question(pattern, 512, heads, "both"), rows(), "results/tiny")
    assert str(refused.value).startswith(said)


def test_mechanisms_of_gpus_nobody_measured_are_modelled_and_marked() -> None:
    h200 = {"environment": {"device": "NVIDIA H200", "compute_capability": "9.0"}}
    found = rows(naive=h200, sdpa=h200, segments=h200)
    question = Question("causal", 8192, HEADS, "both", gpus=4, gpus_per_node=4)
    (modelled,) = mechanism_answers(question, found, "results/tiny")
    assert {one.origin for one in modelled.choices} == {"modelled"}
    assert len(modelled.choices) >= 4 and modelled.choices[0].ratio == 1.0
    times = [one.ms for one in modelled.choices if one.ms is not None]
    assert times == sorted(times)
    assert (
        "the measured rate of segments" in modelled.notes[0]
        and "No row of this was measured" in modelled.notes[0]
    )
    # Four query heads divide over four ranks, over eight they do not.
    of_eight = mechanism_answers(Question("causal", 8192, HEADS, "both", gpus=8), found, "results/tiny")[0]
    (ulysses,) = [one for one in of_eight.choices if one.name == "ulysses"]
    assert (ulysses.ms, ulysses.why) == (None, "4 query heads do not divide over 8 ranks")


def test_nothing_is_modelled_of_a_device_that_no_cluster_has() -> None:
    with pytest.raises(LongcaError, match="a CPU, 2 threads is the GPU of no cluster that is known"):
        mechanism_answers(Question("causal", 2048, HEADS, "both", gpus=8), rows(), "results/tiny")


def test_the_command_reads_a_folder_of_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from typer.testing import CliRunner

    from longca.cli.main import app

    monkeypatch.chdir(tmp_path)
    write_records(STUDY, lambda case: _columns(case, {}))
    words = ["advise", "--pattern", "causal", "--seqlen", "2k", "--heads", "4-2", "--study", "results/tiny"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.output
    assert "Kernels for causal, 2048 tokens, heads 4-2, forward and backward, a CPU, 2 threads" in done.output
    refused = CliRunner().invoke(app, [*words, "--pass", "sideways"])
    assert isinstance(refused.exception, LongcaError)
    assert "'sideways' is not a pass" in str(refused.exception)
