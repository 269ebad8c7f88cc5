"""Reading a study's records: each case of the grid, with its record or without one yet."""

from pathlib import Path
from typing import NamedTuple

from longca.cases import Case, Series, study_series
from longca.errors import LongcaError
from longca.measure.controls import ControlFlags, read_controls
from longca.measure.record import Record, read_records
from longca.reporting.lines import read_lines
from longca.reporting.names import results_of
from longca.study.model import Study


class CaseRecord(NamedTuple):
    """A case of the grid, the record file it belongs to, and its record; None: not measured."""

    case: Case
    file: Path
    record: Record | None


def collect(study: Study, family: str, partial: bool = False) -> list[CaseRecord]:
    """Every case of a family's grid with its record, in the order of the config.

    A line of a record file that is no case of the grid is left out: tables are of the grid. Where the study has a
    control, the doubt it casts on a record stands in its flags. With `partial` a series without a record file is
    read from its journal, as far as that has grown.

    Raises:
        LongcaError: naming file (and line) where a file is empty, has a bad line or a case twice, where
            records of one cell were measured on different masks and, unless `partial`, where a file or a case
            is missing.
    """
    collected = []
    for series in study_series(study):
        if series.family == family:
            collected += _read_series(results_of(study), series, partial)
    _check_masks(collected)
    return _with_control_doubts(study, collected) if study.measure.control else collected


def _with_control_doubts(study: Study, collected: list[CaseRecord]) -> list[CaseRecord]:
    flags = ControlFlags(read_controls(results_of(study)))
    return [CaseRecord(case, file, record and flags.on(record)) for case, file, record in collected]


def _read_series(results: Path, series: Series, partial: bool) -> list[CaseRecord]:
    file, journal = (results / folder / f"{series.name}.jsonl" for folder in ("records", "journals"))
    found: dict[Case, Record] = {}
    if partial and not file.exists() and journal.exists():
        found = {record.case: record for record in read_lines(journal)[0]}
    elif file.exists():
        records = read_records(file)
        if not records:
            raise LongcaError(f"{file}: is empty; right: one record a line")
        for number, record in enumerate(records, 1):
            if record.case in found:
                raise LongcaError(
                    f"{file}:{number}: {_place(record.case)} has a record already; right: one a case"
                )
            found[record.case] = record
    elif not partial:
        raise LongcaError(
            f"{file}: is not there; right: measure the series, or --partial for what is there so far"
        )
    missing = [case for case in series.cases if case not in found]
    if missing and not partial:
        raise LongcaError(
            f"{file}: lacks {len(missing)} of {len(series.cases)} cases, first {_place(missing[0])}; "
            "right: measure the series, or --partial for what is there so far"
        )
    return [CaseRecord(case, file, found.get(case)) for case in series.cases]


def _check_masks(collected: list[CaseRecord]) -> None:
    """Refuse to compare kernels on different masks: every record of one mask file carries the same digest."""
    first: dict[Path, tuple[Path, str]] = {}
    for case, file, record in collected:
        if record is None:
            continue
        known_file, digest = first.setdefault(case.mask_file, (file, record.mask_digest))
        if digest != record.mask_digest:
            raise LongcaError(
                f"{file}: {_place(case)}: mask {record.mask_digest}, but {known_file} has {digest}; "
                "right: the same mask for every kernel; measure the older series again"
            )


def _place(case: Case) -> str:
    return f"seqlen {case.seqlen}, sample {case.sample}, pass {case.pass_}"
