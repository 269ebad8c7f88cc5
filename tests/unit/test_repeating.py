"""Cells measured twice: which ones, where they stand, and what the report says of them."""

import io
import json

import pytest
import reporting_records
from rich.console import Console

from longca.cases import study_series
from longca.errors import LongcaError
from longca.measure.budget import NO_LIMIT
from longca.measure.controls import controls_file, read_controls
from longca.measure.journal import Journal
from longca.measure.repeating import repeat_cells
from longca.reporting.repeatability import comparability, read_repeats
from longca.study.loading import check_study

QUIET = Console(quiet=True)


@pytest.fixture
def results(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path / "results" / "tiny"


def study():
    shape = {"heads": "2-1", "head_dim": 16, "dtype": "float32"}
    measure = {"device": "cpu", "warmups": 1, "repetitions": 3, "threads": 1}
    control = {"kernel": "naive", "seqlen": 32, **shape}
    grid = {"kernels": ["naive", "sdpa"], "patterns": ["causal", "full"], "seqlens": [32], **shape}
    grid["heads"] = ["2-1"]
    return check_study({"study": "tiny", "measure": {**measure, "control": control}, "dense": grid}, "test")


def write(results, changes):
    """Journal lines and no records, as of a series half done: what `changes` makes of each case."""
    for series in study_series(study()):
        for case in series.cases:
            one = reporting_records.record(case, **changes(case))
            Journal(results / "journals" / series.name.with_suffix(".jsonl")).append(str(hash(case)), one)


def test_ok_cells_drawn_by_a_seed_are_measured_again_once(results):
    broken = {"status": "crashed"}
    write(results, lambda case: broken if case.kernel == "sdpa" else {})
    console = Console(record=True, width=200, file=io.StringIO())
    repeat_cells(study(), results, 3, 7, NO_LIMIT, console)
    said = console.export_text().splitlines()
    assert len(said) == 3 and all(" of the first latency" in line for line in said)
    again = Journal(results / "repeats" / "7.jsonl").keys()
    assert len(again) == 3 and {record.kernel for record in again.values()} == {"naive"}
    assert all(record.environment["control"] == read_controls(results)[0].name for record in again.values())
    # All four there are, whatever is asked; the three that the file holds are not measured again.
    (results / "repeats" / "7.jsonl").rename(results / "repeats" / "8.jsonl")
    repeat_cells(study(), results, 99, 8, NO_LIMIT, QUIET)
    assert list(Journal(results / "repeats" / "8.jsonl").keys().items())[:3] == list(again.items())
    assert len(Journal(results / "repeats" / "8.jsonl").keys()) == 4


def test_nothing_ok_is_a_mistake(results):
    with pytest.raises(
        LongcaError, match="study tiny has no case of a dense or sparse kernel that is ok; right: measure one"
    ):
        repeat_cells(study(), results, 3, 0, NO_LIMIT, QUIET)


def test_the_report_says_how_far_two_runs_are_apart(results):
    write(results, lambda case: {})
    cases = [case for one in study_series(study()) if one.kernel == "naive" for case in one.cases]
    for factor, case in zip((1.01, 0.98, 1.05, 1.0), cases, strict=True):
        changes = {} if factor != 1.0 else {"fingerprint": "another"}
        again = reporting_records.record(case, milliseconds=factor, **changes)
        Journal(results / "repeats" / "0.jsonl").append(str(factor), again)
    control = json.loads(reporting_records.record(cases[0]).to_line())
    controls_file(results).write_text(json.dumps({"control": "a", "card": "b", **control}) + "\n")
    repeats = read_repeats(study())
    assert [one.ratio for one in repeats] == [
        pytest.approx(1.01),
        pytest.approx(0.98),
        pytest.approx(1.05),
        None,
    ]
    (controls, again), sections = comparability(study())
    assert controls == "1 control on 1 card: +0.0% to +0.0% from their median, 0 off by over 3%."
    worst = repeats[2].first
    assert again == (
        "Of 4 cells drawn at random and measured again in a run of their own 3 compare: latencies differ by 2.0% at "
        f"the median, 5.0% at worst (naive {worst.pattern} {worst.seqlen} {worst.pass_})."
    )
    assert [len(section.rows) for section in sections] == [1, 4]
    assert [row[-1] for row in sections[1].rows] == ["1.010", "0.980", "1.050", "does not compare"]


def test_a_study_with_neither_says_nothing(results):
    assert comparability(study()) == ([], [])
