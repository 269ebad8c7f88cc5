"""Anchors: throughputs that others published, to set beside ours. Light: which tables there are depends on them."""

import csv
from functools import cache
from pathlib import Path
from typing import NamedTuple

from longca.errors import LongcaError
from longca.study.grids import DenseGrid
from longca.study.model import Study
from longca.units import Heads, parse_heads

RESOURCE = Path(__file__).parents[2] / "resources" / "published_anchors.csv"


class Anchor(NamedTuple):
    """A published throughput in TFLOP/s a GPU; `method` is a dense kernel or a context-parallel mechanism."""

    source: str
    device: str
    family: str
    pattern: str
    pass_: str
    method: str
    gpus: int
    heads: Heads
    head_dim: int
    dtype: str
    seqlen: int
    tflops_per_gpu: float


@cache
def read_anchors() -> tuple[Anchor, ...]:
    """Every published anchor, in the order of the resource. Raises LongcaError naming file and line."""
    with RESOURCE.open(encoding="utf-8", newline="") as file:
        return tuple(_anchor(row, number) for number, row in enumerate(csv.DictReader(file), 2))


def dense_anchors(study: Study) -> list[Anchor]:
    """The anchors of dense kernels, patterns, lengths and shapes that a study has in a grid."""
    return [anchor for anchor in read_anchors() if any(_is_of(anchor, grid) for grid in study.dense)]


def has_dense_anchors(study: Study) -> bool:
    """Whether a study measures anything that others published."""
    return bool(dense_anchors(study))


def _is_of(anchor: Anchor, grid: DenseGrid) -> bool:
    seqlens = grid.kernel_seqlens.get(anchor.method, grid.seqlens)
    return (
        anchor.family == "dense"
        and anchor.method in grid.kernels
        and anchor.pattern in grid.patterns
        and anchor.pass_ in grid.passes
        and anchor.seqlen in seqlens
        and anchor.heads in grid.heads
        and (anchor.head_dim, anchor.dtype) == (grid.head_dim, grid.dtype)
    )


def _anchor(row: dict[str, str], number: int) -> Anchor:
    try:
        return Anchor(
            row["source"],
            row["device"],
            row["family"],
            row["pattern"],
            row["pass"],
            row["method"],
            int(row["gpus"]),
            parse_heads(row["heads"]),
            int(row["head_dim"]),
            row["dtype"],
            int(row["seqlen"]),
            float(row["tflops_per_gpu"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise LongcaError(f"{RESOURCE}:{number}: is no anchor: {error}") from error
