"""Making an archive: the same study gives the same bytes, whenever and by whomever it is made."""

import hashlib
import io
import zipfile
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from longca.cases import study_series
from longca.errors import LongcaError
from longca.files import write_atomically
from longca.measure.record import Record, read_records
from longca.reporting.archive.contents import archive_file, archived_files, config_name
from longca.reporting.archive.crate import METADATA, README, Entry, Run, crate_metadata
from longca.reporting.archive.readme import readme
from longca.reporting.names import results_of
from longca.revision import git_revision
from longca.study.model import Study

# The earliest time a zip file can tell.
_NO_TIME = (1980, 1, 1, 0, 0, 0)
_ORDINARY_FILE = 0o100644
_UNIX = 3


def make_archive(study: Study, config: Path) -> Path:
    """Write results/<study>/archive.zip of a finished study; returns its path.

    `config` is the study's file. Raises LongcaError naming the first file of the study that is not there yet.
    """
    files = archived_files(study, config)
    missing = [file for file in files.values() if not file.is_file()]
    if missing:
        raise LongcaError(
            f"{missing[0]}: is not there ({len(missing)} of {len(files)} files are missing); right: finish the study, "
            f"`snakemake archive --profile profiles/local --configfile {config}`"
        )
    run = _run(study, config)
    content = io.BytesIO()
    entries: dict[str, Entry] = {}
    with zipfile.ZipFile(content, "w") as archive:
        for name in sorted([*files, README]):
            data = readme(run).encode() if name == README else files[name].read_bytes()
            entries[name] = Entry(hashlib.sha256(data).hexdigest(), len(data))
            _add(archive, name, data)
        # Last: it says what came before it.
        _add(archive, METADATA, crate_metadata(run, entries).encode())
    write_atomically(archive_file(study), content.getvalue())
    return archive_file(study)


def _add(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    entry = zipfile.ZipInfo(name, _NO_TIME)
    entry.create_system = _UNIX
    entry.external_attr = _ORDINARY_FILE << 16
    archive.writestr(entry, data, zipfile.ZIP_DEFLATED, compresslevel=9)


def _run(study: Study, config: Path) -> Run:
    records = [record for one in study_series(study) for record in _records(study, one.name)]
    times = sorted(datetime.fromisoformat(record.measured_at) for record in records)
    return Run(
        study=study.study,
        config=config_name(study, config),
        revision=git_revision() or "unknown",
        first=times[0].isoformat(),
        last=times[-1].isoformat(),
        devices=_devices(records),
    )


def _records(study: Study, series: Path) -> list[Record]:
    return read_records(results_of(study) / "records" / f"{series}.jsonl")


def _devices(records: Iterable[Record]) -> tuple[str, ...]:
    return tuple(sorted({str(record.environment.get("device", "unknown device")) for record in records}))
