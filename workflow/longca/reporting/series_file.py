"""The records of one series for a person to look at: of a finished one from its record file, else from its journal."""

from pathlib import Path

from longca.errors import LongcaError
from longca.measure.record import Record
from longca.names import unknown_name
from longca.reporting.case_columns import case_columns, varying
from longca.reporting.lines import read_lines
from longca.reporting.sections import Section
from longca.reporting.words import digits, plain, words

_FOLDERS = ("records", "journals")
_MIB = 2**20


def find_series(series: str) -> Path:
    """The file of `series`: its path, or its name below records/ or journals/ of the one study that has it.

    Raises LongcaError where there is none, or several studies have it.
    """
    if Path(series).is_file():
        return Path(series)
    known: dict[str, dict[Path, Path]] = {}
    for folder in _FOLDERS:  # records before journals: a finished series has both
        for study in sorted(Path("results").glob("*/")):
            for file in sorted((study / folder).rglob("*.jsonl")):
                name = file.relative_to(study / folder).with_suffix("").as_posix()
                known.setdefault(name, {}).setdefault(study, file)
    found = list(known.get(series.removesuffix(".jsonl"), {}).values())
    if not found:
        raise LongcaError(f"show: {unknown_name(series, known, 'series below results/, and no file')}")
    if len(found) > 1:
        raise LongcaError(f"show: {series} is in several studies; right: one of {', '.join(map(str, found))}")
    return found[0]


def series_section(file: Path) -> Section:
    """A row a case: what tells it from the others, what was measured, its status with backend or reason.

    A journal's last line of a case counts; one that a killed job left torn is left out. Raises LongcaError for
    any other line that is no record, and for a file without one.
    """
    records, torn = read_lines(file)
    if not records:
        raise LongcaError(f"{file}: has no record; right: a series that something was measured of")
    columns = [case_columns(record.case) for record in records]
    telling = dict.fromkeys(["seqlen", "pass", *varying(columns)])
    same = [
        f"{name} {value}" for name, value in columns[0].items() if name not in telling and value is not None
    ]
    devices = dict.fromkeys(str(record.environment.get("device", "unknown device")) for record in records)
    return Section(
        f"{file}: {', '.join(same)}, on {plain('; '.join(devices))}",
        (*telling, "TFLOP/s", "ms (p20 to p80)", "peak MiB", "status: backend or reason"),
        tuple(
            (*(str(row.get(name, "")) for name in telling), *_measured(record))
            for row, record in zip(columns, records, strict=True)
        ),
        numeric=False,
        note="The last line is torn and left out: its writer was stopped." if torn else "",
    )


def _measured(record: Record) -> tuple[str, ...]:
    said = plain((record.backend if record.status == "ok" else record.reason) or "")
    flags = f" (flagged {', '.join(record.flags)})" if record.flags else ""
    status = f"{words(record.status)}: {said}{flags}"
    if record.latency_ms is None or record.peak_memory_bytes is None or record.tflops is None:
        return "", "", "", status
    latency = record.latency_ms
    spread = f"{digits(latency.p50)} ({digits(latency.p20)} to {digits(latency.p80)})"
    return digits(record.tflops), spread, f"{record.peak_memory_bytes / _MIB:.1f}", status
