"""Checking an archive from itself alone: every digest, and tables and figures rebuilt from the records inside."""

import contextlib
import hashlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

from longca.cases import Case, study_series
from longca.errors import LongcaError
from longca.masks.blocks import load_block_map
from longca.masks.mask import read_mask
from longca.measure.masks import drawn_digest
from longca.measure.record import read_records
from longca.reporting.archive.contents import CHECKOUT, code_files
from longca.reporting.archive.reading import Archive, open_archive
from longca.reporting.figures.drawing import figure_text
from longca.reporting.names import (
    TABLE_FORMATS,
    figure_file,
    figure_names,
    results_of,
    table_file,
    table_names,
)
from longca.reporting.tables import write_table
from longca.study.loading import read_study
from longca.study.model import Study


def check_archive(file: Path) -> list[str]:
    """A line for each thing that is wrong in an archive; none where all of it holds.

    Raises LongcaError where the file is no archive at all, or not safe to unpack.
    """
    with open_archive(file) as archive:
        problems = archive.problems()
        if problems:  # what was changed by hand is not rebuilt from
            return [f"{file}: {problem}" for problem in problems]
        with tempfile.TemporaryDirectory(prefix="longca-check-") as folder:
            archive.unpack(Path(folder))
            other = other_code(archive)
            with contextlib.chdir(folder):
                found = list(_rebuilt_otherwise(Path(archive.config)))
    hint = f" ({other}: check it with its own, see its README.md)" if found and other else ""
    return [f"{file}: {line}{hint}" for line in found]


def other_code(archive: Archive) -> str | None:
    """How the archive's code differs from this one, or None: other code may rightly draw otherwise."""
    here = {path.relative_to(CHECKOUT).as_posix(): path for path in code_files()}
    differing = [
        name
        for name, path in here.items()
        if name not in archive.listed or archive.listed[name].sha256 != _sha256(path)
    ]
    return f"its code differs from this longca's in {len(differing)} files" if differing else None


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _rebuilt_otherwise(config: Path) -> Iterator[str]:
    """A line for each mask, table or figure that does not hold; the unpacked study is the working directory."""
    try:
        study = read_study(config)
        yield from _masks(study)
        yield from _tables(study)
        yield from _figures(study)
    except LongcaError as error:
        yield " ".join(str(error).split())


def _masks(study: Study) -> Iterator[str]:
    """Records of other masks than the archived ones or, where a frozen study has none, than those it draws."""
    digests: dict[Path, str] = {}
    for series in study_series(study):
        file = results_of(study) / "records" / f"{series.name}.jsonl"
        for number, record in enumerate(read_records(file), 1):
            mask = results_of(study) / record.case.mask_file
            if mask not in digests:
                digests[mask] = _mask_digest(study, record.case)
            if digests[mask] != record.mask_digest:
                yield f"{file}:{number}: measured on another mask than {mask}"


def _mask_digest(study: Study, case: Case) -> str:
    file = results_of(study) / case.mask_file
    if study.frozen and not file.exists():
        return drawn_digest(study, results_of(study), case)
    return load_block_map(file).digest if file.suffix == ".npz" else read_mask(file).digest


def _tables(study: Study) -> Iterator[str]:
    for name in table_names(study):
        archived = {suffix: _bytes(table_file(study, name, suffix)) for suffix in TABLE_FORMATS}
        write_table(study, name)
        for suffix, content in archived.items():
            file = table_file(study, name, suffix)
            if content != file.read_bytes():
                yield f"{file}: {_not_what(content, 'the records')}"


def _figures(study: Study) -> Iterator[str]:
    """Drawn from the tables that were rebuilt."""
    for name in figure_names(study):
        file = figure_file(study, name, "json")
        content = _bytes(file)
        if content != figure_text(study, name).encode():
            yield f"{file}: {_not_what(content, 'the records and masks')}"


def _not_what(content: bytes | None, source: str) -> str:
    return "is missing" if content is None else f"is not what {source} give"


def _bytes(file: Path) -> bytes | None:
    return file.read_bytes() if file.exists() else None
