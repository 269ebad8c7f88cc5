"""One side of a comparison: the records of an archive, of a study's results or of its config, by their case."""

import re
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from longca.cases import Case
from longca.errors import LongcaError
from longca.measure.environments import OWN
from longca.measure.record import Record, read_records
from longca.reporting.archive.reading import open_archive
from longca.reporting.long import flatten
from longca.reporting.names import results_of
from longca.reporting.words import plain
from longca.study.loading import read_study

_MANY = 4
_MEASURED = re.compile(r"results/[^/]+/(records|environments)/")


@dataclass(frozen=True)
class Side:
    """Where the records come from, as it was typed, and each by its case."""

    source: Path
    records: dict[Case, Record]

    def environment(self) -> dict[str, str]:
        """What the records say of devices and versions, a text a key; several values after each other.

        Without what is each record's own: no difference between two sides.
        """
        values: dict[str, dict[str, None]] = {}
        for record in self.records.values():
            told: dict[str, Any] = {}
            flatten("", {k: v for k, v in record.environment.items() if k not in OWN}, told)
            for name, value in told.items():
                values.setdefault(name.removeprefix("_"), {})[plain(str(value), 80)] = None
        return {name: _said(list(found)) for name, found in values.items()}


def read_side(source: Path) -> Side:
    """The records of an archive (.zip), a folder results/STUDY, or the study of a config (.yaml).

    Raises LongcaError where there are none, or two of one case.
    """
    if source.suffix == ".zip":
        return _archived(source)
    if source.is_dir():
        return _of_folder(source, source)
    if source.suffix in (".yaml", ".yml"):
        return _of_folder(source, results_of(read_study(source)))
    raise LongcaError(
        f"{source}: is nothing to compare; right: an archive (.zip), a folder results/STUDY, a study's config (.yaml)"
    )


def _archived(file: Path) -> Side:
    with open_archive(file) as archive, tempfile.TemporaryDirectory(prefix="longca-compare-") as folder:
        names = [name for name in archive.entries if _MEASURED.match(name)]
        changed = [line for line in archive.problems() if line.partition(":")[0] in names]
        if changed:
            raise LongcaError(f"{file}: {changed[0]}; right: an archive as it was made")
        archive.unpack(Path(folder), names)
        return _of_folder(file, *(Path(folder) / "results").glob("*"))


def _of_folder(source: Path, *folders: Path) -> Side:
    found: dict[Case, Record] = {}
    for folder in folders:
        for file in sorted((folder / "records").rglob("*.jsonl")):
            for number, record in enumerate(read_records(file), 1):
                if record.case in found:
                    place = f"{source}: {file.relative_to(folder)}:{number}"
                    raise LongcaError(f"{place}: the case has a record already; right: one a case")
                found[record.case] = record
    if not found:
        raise LongcaError(f"{source}: has no records; right: what a study has measured, as results/STUDY")
    return Side(source, found)


def _said(values: Iterable[str]) -> str:
    listed = sorted(values)
    return ", ".join(listed) if len(listed) <= _MANY else f"{len(listed)} different"
