"""Freezing a study: its records in a form small enough for a repository, from which everything else is made again.

Lines keep every column. samples_ms and relative_error keep four digits, latency_ms six, the environment is kept once
(environments.py), a control's doubt stands in `flags`, and each line carries its journal's key, so that a study no
longer frozen goes on measuring from it. Lines of jobs and controls lose their spaces.
"""

import json
from pathlib import Path
from typing import Any

from longca.cases import Series, study_series
from longca.errors import LongcaError
from longca.files import write_atomically
from longca.measure.controls import ControlFlags, controls_file, read_controls
from longca.measure.environments import digest_of, environment_file, shorten
from longca.measure.journal import Journal
from longca.measure.masks import drawn_digest
from longca.measure.record import Record, read_keyed_records
from longca.study.model import Study


def refuse_frozen(study: Study, config: Path) -> None:
    """Raise LongcaError where a study's records are inputs."""
    if study.frozen:
        raise LongcaError(
            f"{config}: study {study.study} is frozen: its records are inputs, nothing of it is measured; "
            "right: frozen: false, which goes on from them"
        )


def freeze_study(study: Study, results: Path) -> None:
    """Write every record file of a study in its frozen form. Raises LongcaError where a series lacks a case."""
    flags = ControlFlags(read_controls(results)) if study.measure.control else None
    whole = [(one, _read_whole(results, one)) for one in study_series(study)]
    for series, keyed in whole:
        _freeze(results, series, keyed, flags)
    for file in filter(Path.exists, (controls_file(results), *(results / "jobs").rglob("*.jsonl"))):
        write_atomically(file, b"\n".join(map(_without_spaces, file.read_bytes().split(b"\n"))))


def _read_whole(results: Path, series: Series) -> list[tuple[str | None, Record]]:
    """The records of a series' cases in their order, each with its journal's key where that is known.

    Where a series has no records file, as when the time for its last grid ran out, the last journal line of each case.
    """
    file, journal = _records_file(results, series), results / "journals" / series.name.with_suffix(".jsonl")
    lines = Journal(journal).keys() if journal.exists() else {}
    if file.exists():
        keys = {(record.case, record.measured_at): key for key, record in lines.items()}
        keyed = [
            (key or keys.get((record.case, record.measured_at)), record)
            for key, record in read_keyed_records(file)
        ]
    else:
        keyed = list(lines.items())
    found = {record.case: (key, record) for key, record in keyed}
    missing = [case for case in series.cases if case not in found]
    if missing:
        raise LongcaError(
            f"{file}: lacks {len(missing)} of {len(series.cases)} cases, first seqlen {missing[0].seqlen}, pass "
            f"{missing[0].pass_}; right: measure the series, or a config without them, then freeze the study"
        )
    return [found[case] for case in series.cases]


def _freeze(
    results: Path, series: Series, keyed: list[tuple[str | None, Record]], flags: ControlFlags | None
) -> None:
    lines = []
    for key, record in keyed:
        columns, shared = _frozen(flags.on(record) if flags else record)
        file = environment_file(results, digest_of(shared))
        if not file.exists():
            write_atomically(file, json.dumps(shared, indent=1) + "\n")
        line = ({"key": key} if key else {}) | columns
        lines.append(_line(line) + "\n")
    write_atomically(_records_file(results, series), "".join(lines))


def _line(columns: dict[str, Any]) -> str:
    return json.dumps(columns, allow_nan=False, separators=(",", ":"))


def _without_spaces(line: bytes) -> bytes:
    """A line that a killed job left torn stays as it is: readers skip it, and tell."""
    try:
        return _line(json.loads(line)).encode()
    except ValueError:
        return line


def _frozen(record: Record) -> tuple[dict[str, Any], dict[str, Any]]:
    """A record's columns in their frozen form, and the environment they refer to."""
    columns = json.loads(record.to_line())
    if columns["samples_ms"] is not None:
        columns["samples_ms"] = [_digits(sample, 4) for sample in columns["samples_ms"]]
        columns["latency_ms"] = {name: _digits(value, 6) for name, value in columns["latency_ms"].items()}
    if columns["relative_error"] is not None:
        errors = columns["relative_error"].items()
        columns["relative_error"] = {
            name: None if error is None else _digits(error, 4) for name, error in errors
        }
    columns["environment"], shared = shorten(columns["environment"])
    return columns, shared


def _digits(value: float, digits: int) -> float:
    return float(f"{value:.{digits}g}")


def check_masks(study: Study, results: Path) -> int:
    """Draw every mask and map of a study again, in memory; how many there are.

    Raises LongcaError naming the first record whose digest is another.
    """
    digests: dict[Path, str] = {}
    for series in study_series(study):
        file = _records_file(results, series)
        for number, (_, record) in enumerate(read_keyed_records(file), 1):
            mask_file = record.case.mask_file
            if mask_file not in digests:
                digests[mask_file] = drawn_digest(study, results, record.case)
            if record.mask_digest != digests[mask_file]:
                raise LongcaError(
                    f"{file}:{number}: mask_digest is {record.mask_digest}, the study draws {digests[mask_file]}"
                )
    return len(digests)


def _records_file(results: Path, series: Series) -> Path:
    return results / "records" / series.name.with_suffix(".jsonl")
