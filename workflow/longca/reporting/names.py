"""Which tables and figures a study has, and where they lie. Light: a Snakefile asks at every start."""

import math
from pathlib import Path

from longca.masks.patterns import PATTERNS
from longca.reporting.kinds import ALL_FAMILIES, FIGURES, TABLES, FigureKind, TableKind
from longca.study.model import Study

TABLE_FORMATS = ("csv", "parquet", "md", "tex")
# Pictures as wide as the text of a page, and as one column of two.
FIGURE_FORMATS = ("html", "svg", "pdf", "column.svg", "column.pdf", "json")


def families(study: Study) -> tuple[str, ...]:
    """The families a study has a grid for, and a table of records each."""
    return tuple(family for family in ALL_FAMILIES if getattr(study, family))


def tables_of(study: Study) -> tuple[TableKind, ...]:
    """The tables of a study; each is written in every one of TABLE_FORMATS."""
    own = set(families(study))
    return tuple(kind for kind in TABLES if own & set(kind.families) and kind.has_rows(study))


def figures_of(study: Study) -> tuple[FigureKind, ...]:
    """The figures of a study; each is written in every one of FIGURE_FORMATS."""
    tables = {None, *table_names(study)}
    own = set(families(study))
    return tuple(kind for kind in FIGURES if set(kind.families) & own and kind.table in tables)


def table_names(study: Study) -> tuple[str, ...]:
    """Names of a study's tables."""
    return tuple(kind.name for kind in tables_of(study))


def figure_names(study: Study) -> tuple[str, ...]:
    """Names of a study's figures."""
    return tuple(kind.name for kind in figures_of(study))


def results_of(study: Study) -> Path:
    """The folder of a study's results, below the working directory."""
    return Path("results") / study.study


def table_file(study: Study, name: str, suffix: str) -> Path:
    """Where one form of a table lies."""
    return results_of(study) / "tables" / f"{name}.{suffix}"


def figure_file(study: Study, name: str, suffix: str) -> Path:
    """Where one form of a figure lies."""
    return results_of(study) / "figures" / f"{name}.{suffix}"


def pictured_masks(study: Study) -> list[Path]:
    """The mask files the figure `masks` is drawn from: sample 0 of each dense pattern, at one of its lengths.

    The length nearest to eight windows is taken: there a window is neither a hair nor the whole picture.
    """
    wanted = 8 * max(1, study.mask.window)
    seqlens = {seqlen for grid in study.dense for seqlen in grid.seqlens}
    masks: dict[str, Path] = {}
    for seqlen in sorted(seqlens, key=lambda tokens: abs(math.log2(tokens / wanted))):
        for grid in (grid for grid in study.dense if seqlen in grid.seqlens):
            for pattern in grid.patterns:
                place = Path(
                    "masks", _pictured_dataset(pattern, grid.datasets), pattern, str(seqlen), "0.json"
                )
                masks.setdefault(pattern, results_of(study) / place)
    return list(masks.values())


def _pictured_dataset(pattern: str, datasets: tuple[str, ...]) -> str:
    return datasets[0] if PATTERNS[pattern].takes_documents else "auto"
