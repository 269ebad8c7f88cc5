"""Cells measured twice: which ones, where they stand, and what the report says of them."""

import io

import pytest
from rich.console import Console

from longca.cases import study_series
from longca.errors import LongcaError
from longca.measure.controls import read_controls
from longca.measure.journal import Journal
from longca.measure.record import read_records
from longca.measure.repeating import repeat_cells
from longca.measure.running import measure_series
from longca.reporting.repeatability import comparability, read_repeats
from longca.study.loading import check_study

pytestmark = pytest.mark.usefixtures("fake_kernels")
QUIET = Console(quiet=True)


@pytest.fixture
def results(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path / "results" / "tiny"


def study():
    shape = {"heads": "2-1", "head_dim": 16, "dtype": "float32"}
    measure = {"device": "cpu", "warmups": 1, "repetitions": 3, "threads": 1}
    control = {"kernel": "right", "seqlen": 32, **shape}
    grid = {"kernels": ["right", "raises"], "patterns": ["causal", "full"], "seqlens": [32], **shape}
    grid["heads"] = ["2-1"]
    return check_study({"study": "tiny", "measure": {**measure, "control": control}, "dense": grid}, "test")


def measured(results, **options):
    measure_series(study(), results, study_series(study()), None, frozenset(), QUIET, **options)


def test_ok_cells_drawn_by_a_seed_are_measured_again_once(results):
    measured(results)
    console = Console(record=True, width=200, file=io.StringIO())
    repeat_cells(study(), results, 3, 7, None, console)
    said = console.export_text().splitlines()
    assert len(said) == 3 and all(" of the first latency" in line for line in said)
    again = Journal(results / "repeats" / "7.jsonl").keys()
    assert len(again) == 3 and {record.kernel for record in again.values()} == {"right"}
    assert all(record.environment["control"] == read_controls(results)[0].name for record in again.values())
    repeat_cells(study(), results, 3, 7, None, QUIET)
    assert Journal(results / "repeats" / "7.jsonl").keys() == again
    # No more than there are, whatever is asked.
    repeat_cells(study(), results, 99, 8, None, QUIET)
    assert len(Journal(results / "repeats" / "8.jsonl").keys()) == 4


def test_a_series_half_done_is_drawn_from_its_journal(results):
    measured(results)
    for file in (results / "records").rglob("*.jsonl"):
        file.unlink()
    repeat_cells(study(), results, 4, 0, None, QUIET)
    assert len(Journal(results / "repeats" / "0.jsonl").keys()) == 4


def test_nothing_ok_is_a_mistake(results):
    with pytest.raises(
        LongcaError, match="study tiny has no case that is ok; right: measure it, then repeat"
    ):
        repeat_cells(study(), results, 3, 0, None, QUIET)


def test_the_report_says_how_far_two_runs_are_apart(results):
    measured(results)
    repeat_cells(study(), results, 4, 0, None, QUIET)
    journal = results / "repeats" / "0.jsonl"
    records = {
        record.case: record
        for file in (results / "records").rglob("*.jsonl")
        for record in read_records(file)
    }
    lines = []
    for factor, (key, record) in zip((1.01, 0.98, 1.05, 1.0), Journal(journal).keys().items(), strict=True):
        first = records[record.case]
        latency = first.latency_ms.model_copy(update={"p50": factor * first.latency_ms.p50})
        changes = {"latency_ms": latency, "fingerprint": first.fingerprint if factor != 1.0 else "another"}
        lines.append((key, record.model_copy(update=changes)))
    journal.unlink()
    for key, record in lines:
        Journal(journal).append(key, record)
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
        f"the median, 5.0% at worst (right {worst.pattern} {worst.seqlen} {worst.pass_})."
    )
    assert [len(section.rows) for section in sections] == [1, 4]
    assert [row[-1] for row in sections[1].rows] == ["1.010", "0.980", "1.050", "does not compare"]


def test_a_study_with_neither_says_nothing(results):
    assert comparability(study()) == ([], [])
