"""Which tables and figures a study has, and where they lie. Light: a Snakefile asks at every start."""

import math
from pathlib import Path

from longca.masks.patterns import PATTERNS
from longca.study.model import Study

TABLE_FORMATS = ("csv", "parquet", "md", "tex")
FIGURE_FORMATS = ("html", "svg", "pdf", "json")

_DENSE_FIGURES = (
    "dense_throughput_over_length",
    "dense_throughput_over_patterns",
    "support",
    "peak_memory",
    "masks",
)
_SPARSE_FIGURES = ("sparse_throughput_over_density", "support")


def families(study: Study) -> tuple[str, ...]:
    """The families of kernels a study has a grid for, and a table of records each."""
    return tuple(family for family in ("dense", "sparse") if getattr(study, family))


def table_names(study: Study) -> tuple[str, ...]:
    """Names of a study's tables; each is written in every one of TABLE_FORMATS."""
    return (*families(study), "support", "verification") if families(study) else ()


def figure_names(study: Study) -> tuple[str, ...]:
    """Names of a study's figures; each is written in every one of FIGURE_FORMATS."""
    dense = _DENSE_FIGURES if study.dense else ()
    sparse = _SPARSE_FIGURES if study.sparse else ()
    return tuple(dict.fromkeys((*dense, *sparse)))


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
    """The mask files the figure `masks` is drawn from: sample 0 of each dense pattern, at one length.

    The length nearest to eight windows is taken: there a window is neither a hair nor the whole picture.
    """
    grid = study.dense
    if grid is None:
        return []
    seqlen = min(grid.seqlens, key=lambda tokens: abs(math.log2(tokens / (8 * max(1, study.mask.window)))))
    return [
        results_of(study)
        / "masks"
        / _pictured_dataset(pattern, grid.datasets)
        / pattern
        / str(seqlen)
        / "0.json"
        for pattern in grid.patterns
    ]


def _pictured_dataset(pattern: str, datasets: tuple[str, ...]) -> str:
    return datasets[0] if PATTERNS[pattern].takes_documents else "auto"
