"""Freezing: the form of a record line, what readers make of it, and what is refused."""

import json
from pathlib import Path

import pytest
from reporting_records import dense_study, record, record_file, write_records

from longca.cases import Case, study_series
from longca.errors import LongcaError
from longca.measure.environments import environment_file
from longca.measure.freezing import check_masks, freeze_study
from longca.measure.journal import Journal
from longca.measure.masks import drawn_digest
from longca.measure.record import read_keyed_records, read_records
from longca.reporting.collect import collect
from longca.reporting.names import results_of

SERIES = "dense/auto/naive/causal/4-2"
STUDY = dense_study(seqlens=[256, 512])


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def measured(case: Case) -> dict[str, object]:
    """A record with more digits than are kept, on one of two machines, with a state of its own."""
    environment = {"device": "a GPU", "host": case.kernel, "state": {"before": {"power_w": case.seqlen}}}
    return {
        "samples_ms": [1.23456789, 0.000123456, 12345.678],
        "relative_error": {"out": 0.00123456, "dq": None, "dk": None, "dv": None},
        "environment": environment,
        "mask_digest": drawn_digest(STUDY, results_of(STUDY), case),
    }


def write_journals(leave_out: int = 0) -> None:
    """Journals of every series, the first so many cases of each left out, and no records."""
    for series in study_series(STUDY):
        journal = Journal(results_of(STUDY) / "journals" / series.name.with_suffix(".jsonl"))
        for case in series.cases[leave_out:]:
            journal.append(f"key of {case.seqlen}", record(case, **measured(case)))


def test_a_frozen_line_is_short_and_read_as_the_record_it_stands_for() -> None:
    write_records(STUDY, measured)
    before = {case: record for case, _, record in collect(STUDY, "dense")}
    freeze_study(STUDY, results_of(STUDY))
    for case, _, after in collect(STUDY, "dense"):
        assert after is not None and after.environment == before[case].environment
        assert after.samples_ms == [1.235, 0.0001235, 12350.0]
        assert after.relative_error == {"out": 0.001235, "dq": None, "dk": None, "dv": None}
        assert after.latency_ms is not None and after.latency_ms.p50 == 1.23457
        same = {"samples_ms", "relative_error", "latency_ms"}
        assert after.model_dump(exclude=same) == before[case].model_dump(exclude=same)
    # Two machines, each kept once; on the line stands what is its own.
    names = {path.stem for path in environment_file(results_of(STUDY), "x").parent.iterdir()}
    lines = [json.loads(line) for line in record_file(STUDY, SERIES).read_text().splitlines()]
    assert len(names) == 2
    assert [line["environment"]["state"]["before"]["power_w"] for line in lines] == [256, 512]
    assert {line["environment"]["digest"] for line in lines} < names
    assert all("key" not in line and "device" not in line["environment"] for line in lines)
    assert check_masks(STUDY, results_of(STUDY)) == 4


def test_frozen_twice_is_frozen_once() -> None:
    write_records(STUDY, measured)
    freeze_study(STUDY, results_of(STUDY))
    once = record_file(STUDY, SERIES).read_bytes()
    freeze_study(STUDY, results_of(STUDY))
    assert record_file(STUDY, SERIES).read_bytes() == once


@pytest.mark.parametrize("name", ["jobs/dense/one.jsonl", "controls.jsonl"])
@pytest.mark.parametrize("torn", [b'{"series": "x", "wal', b"", b"\xff{}", b'{"wall_s": NaN}'])
def test_lines_of_jobs_and_controls_lose_their_spaces_and_torn_ones_stay(name: str, torn: bytes) -> None:
    file = results_of(STUDY) / name
    write_records(STUDY, measured)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b'{"wall_s": 1.5, "series": "\xc3\xa9"}\n' + torn + b'\n{"wall_s": 2.0}\n')
    freeze_study(STUDY, results_of(STUDY))
    assert file.read_bytes() == b'{"wall_s":1.5,"series":"\\u00e9"}\n' + torn + b'\n{"wall_s":2.0}\n'


def test_a_series_without_a_records_file_is_frozen_from_its_journal() -> None:
    write_journals()
    freeze_study(STUDY, results_of(STUDY))
    keyed = read_keyed_records(record_file(STUDY, SERIES))
    assert [(key, record.seqlen) for key, record in keyed] == [("key of 256", 256), ("key of 512", 512)]


def test_a_series_that_lacks_a_case_is_refused_and_nothing_is_written() -> None:
    write_journals(leave_out=1)
    said = r"naive/full/4-2\.jsonl: lacks 1 of 2 cases, first seqlen 256, pass forward; right: measure the series"
    with pytest.raises(LongcaError, match=said):
        freeze_study(STUDY, results_of(STUDY))
    assert not (results_of(STUDY) / "records").exists()


def test_an_environment_that_is_gone_or_another_is_named() -> None:
    write_records(STUDY, measured)
    freeze_study(STUDY, results_of(STUDY))
    line = json.loads(record_file(STUDY, SERIES).read_text().splitlines()[0])
    file = environment_file(results_of(STUDY), line["environment"]["digest"])
    kept = file.read_text()
    file.write_text(kept.replace("a GPU", "another GPU"))
    with pytest.raises(LongcaError, match=rf"{file.name}: is not what its name says"):
        read_records(record_file(STUDY, SERIES))
    file.unlink()
    with pytest.raises(LongcaError, match=rf"{file.name}: cannot be read, and records refer to it"):
        read_records(record_file(STUDY, SERIES))
    for other in file.parent.iterdir():
        other.unlink()
    file.parent.rmdir()
    with pytest.raises(LongcaError, match=r"4-2\.jsonl:1: environment: [0-9a-f]{16} is kept in no folder"):
        read_records(record_file(STUDY, SERIES))


def test_records_of_another_mask_are_named() -> None:
    write_records(STUDY, lambda case: {**measured(case), "mask_digest": "another"})
    with pytest.raises(
        LongcaError, match=r"4-2\.jsonl:1: mask_digest is another, the study draws [0-9a-f]{64}"
    ):
        check_masks(STUDY, results_of(STUDY))
