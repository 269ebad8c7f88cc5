"""What an archive holds: the study's config and results, and the code that made them, each by its name in the archive.

Light: the Snakefile asks for it.
"""

from collections.abc import Iterator
from pathlib import Path

from longca.cases import study_series
from longca.data.packing import base_dataset, resolve_dataset
from longca.masks.patterns import PATTERNS
from longca.measure.ceilings import ceilings_file
from longca.measure.controls import controls_file
from longca.reporting.names import (
    FIGURE_FORMATS,
    TABLE_FORMATS,
    figure_file,
    figure_names,
    results_of,
    table_file,
    table_names,
)
from longca.study.model import Study

CHECKOUT = Path(__file__).parents[4]
_CODE_FILES = ("Snakefile", "Makefile", "pyproject.toml", "LICENSE")
_CODE_FOLDERS = ("rules", "workflow", "envs", "profiles")
_NO_CODE = ("__pycache__", ".egg-info")


def archive_file(study: Study) -> Path:
    """Where a study's archive lies."""
    return results_of(study) / "archive.zip"


def archived_files(study: Study, config: Path) -> dict[str, Path]:
    """Every file of the archive but the two that describe it, by its name there; unzipped they are a checkout."""
    names = {path.as_posix(): path for path in (*result_files(study), *side_files(study))}
    code = {path.relative_to(CHECKOUT).as_posix(): path for path in code_files()}
    return code | names | {config_name(study, config): config}


def config_name(study: Study, config: Path) -> str:
    """The config's name in the archive: its own where it lies below the working directory."""
    inside = not config.is_absolute() and ".." not in config.parts
    return config.as_posix() if inside else f"config/{study.study}.yaml"


def code_files() -> list[Path]:
    """Workflow, package, pinned environments and profiles of this checkout."""
    inside = (path for name in _CODE_FOLDERS for path in sorted((CHECKOUT / name).rglob("*")))
    kept = (path for path in inside if path.is_file() and not _is_left_out(path))
    return [*(CHECKOUT / name for name in _CODE_FILES), *kept]


def result_files(study: Study) -> list[Path]:
    """What the rules leave of a whole study: lengths, documents, masks, records, tables, figures, report.

    Of a frozen one, what was drawn as far as the repository keeps it: nothing draws it again.
    """
    records = [results_of(study) / "records" / f"{one.name}.jsonl" for one in study_series(study)]
    tables = [table_file(study, name, suffix) for name in table_names(study) for suffix in TABLE_FORMATS]
    figures = [figure_file(study, name, suffix) for name in figure_names(study) for suffix in FIGURE_FORMATS]
    drawn = [path for path in _drawn(study) if not study.frozen or path.exists()]
    return [*drawn, *records, *tables, *figures, results_of(study) / "report.html"]


def side_files(study: Study) -> list[Path]:
    """What measuring left beside the records and no rule declares, as far as it is there.

    Environments that records name, controls, the accounts of jobs, and what commands typed by hand left.
    """
    results = results_of(study)
    beside = [
        controls_file(results),
        *(results / "jobs" / f"{one.name}.jsonl" for one in study_series(study)),
    ]
    environments = sorted((results / "environments").glob("*.json"))
    return [*filter(Path.exists, beside), *environments, *by_hand_files(study)]


def by_hand_files(study: Study) -> list[Path]:
    """Ceilings and cells measured again, as far as they are there: figures and the report are made of them, too."""
    results = results_of(study)
    return [*filter(Path.exists, [ceilings_file(results)]), *sorted((results / "repeats").glob("*.jsonl"))]


def _drawn(study: Study) -> list[Path]:
    """Every mask and block map, and before them the lengths and documents that they were drawn from."""
    masks = dict.fromkeys(results_of(study) / path for one in study_series(study) for path in one.mask_files)
    return [*dict.fromkeys(path for mask in masks for path in _drawn_from(study, mask)), *masks]


def _drawn_from(study: Study, mask: Path) -> Iterator[Path]:
    """The lengths and documents a mask was drawn from: masks/<dataset>/<pattern>/<seqlen>/<sample>.json has some."""
    parts = mask.relative_to(results_of(study)).parts
    if parts[0] == "masks" and PATTERNS[parts[2]].takes_documents:
        _, dataset, _, seqlen, sample = parts
        yield results_of(study) / "lengths" / f"{base_dataset(resolve_dataset(dataset, int(seqlen)))}.csv"
        yield results_of(study) / "documents" / dataset / seqlen / sample


def _is_left_out(path: Path) -> bool:
    """Whether a file is no code: what Python, pip or an editor left beside it."""
    parts = path.relative_to(CHECKOUT).parts
    return any(part.startswith(".") or part.endswith(_NO_CODE) for part in parts)
