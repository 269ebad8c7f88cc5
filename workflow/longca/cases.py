"""Case: one thing to measure. Series: the cases that share a record file, and so a job."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from longca.masks.patterns import PATTERNS
from longca.study.grids import DenseGrid, Shape, SparseGrid
from longca.study.model import Study
from longca.units import Heads


@dataclass(frozen=True)
class Case:
    """One kernel on one mask, length, shape and pass.

    Lengths and blocks are in tokens; `block` and `density_nominal` are block-sparse's alone.
    """

    family: str
    kernel: str
    dataset: str
    pattern: str
    seqlen: int
    sample: int
    q_heads: int
    kv_heads: int
    head_dim: int
    dtype: str
    pass_: str
    block: int | None = None
    density_nominal: float | None = None

    def columns(self) -> dict[str, Any]:
        """The case as columns of its record: `pass` by its own name, block-sparse's only where it is one."""
        columns = {("pass" if name == "pass_" else name): value for name, value in asdict(self).items()}
        if self.family != "sparse":
            del columns["block"], columns["density_nominal"]
        return columns

    @property
    def mask_file(self) -> Path:
        """Where the case's mask or block map lies, below results/<study>/."""
        if self.family == "sparse":
            place = Path("blocks", self.pattern, str(self.seqlen), str(self.block), str(self.density_nominal))
            return place / str(self.kv_heads) / f"{self.sample}.npz"
        return Path("masks", self.dataset, self.pattern, str(self.seqlen), f"{self.sample}.json")


@dataclass(frozen=True)
class Series:
    """All lengths, samples and passes of a kernel on a pattern and heads: one record file, one job."""

    family: str
    dataset: str
    kernel: str
    pattern: str
    heads: Heads
    cases: tuple[Case, ...]

    @property
    def name(self) -> Path:
        """Where the series stands below records/ and journals/, without its suffix."""
        parts = [self.family, self.kernel, self.pattern, str(self.heads)]
        if self.family == "dense":
            parts.insert(1, self.dataset)
        return Path(*parts)

    @property
    def mask_files(self) -> list[Path]:
        """The files of its masks below results/<study>/, each once, in the order of the cases."""
        return list(dict.fromkeys(case.mask_file for case in self.cases))


def study_series(study: Study) -> list[Series]:
    """Every series of a study that this version can measure, in the order of its config, with all its cases."""
    whole: dict[Path, Series] = {}
    for part in (part for grid in grid_series(study) for part in grid):
        earlier = whole.get(part.name)
        whole[part.name] = replace(part, cases=earlier.cases + part.cases) if earlier else part
    return list(whole.values())


def grid_series(study: Study) -> list[list[Series]]:
    """For each grid of the config, in its order, its series with the cases that no earlier grid has."""
    grids = [*map(_dense, study.dense), *map(_sparse, study.sparse)]
    seen: set[Case] = set()
    found = []
    for grid in grids:
        parts = [replace(one, cases=tuple(case for case in one.cases if case not in seen)) for one in grid]
        seen.update(case for part in parts for case in part.cases)
        found.append([part for part in parts if part.cases])
    return found


def find_series(study: Study, **wanted: str) -> list[Series]:
    """The series whose family, dataset, kernel, pattern and heads are the wanted ones (as texts)."""
    return [
        s
        for s in study_series(study)
        if all(str(getattr(s, name)) == value for name, value in wanted.items())
    ]


def _dense(grid: DenseGrid) -> Iterator[Series]:
    for kernel in grid.kernels:
        points = [(seqlen, None, None) for seqlen in grid.kernel_seqlens.get(kernel, grid.seqlens)]
        for pattern in grid.patterns:
            # Where nothing is drawn, every sample is the same mask.
            samples = grid.samples if PATTERNS[pattern].is_drawn else 1
            # A pattern without documents is the same under every dataset: it is measured once, under auto.
            for dataset in grid.datasets if PATTERNS[pattern].takes_documents else ("auto",):
                for heads in grid.heads:
                    yield _series(grid, "dense", dataset, kernel, pattern, heads, points, samples)


def _sparse(grid: SparseGrid) -> Iterator[Series]:
    for kernel in grid.kernels:
        for pattern in grid.patterns:
            points = [(s, b, d) for s in grid.seqlens for b in grid.blocks[pattern] for d in grid.densities]
            for heads in grid.heads:
                yield _series(grid, "sparse", "auto", kernel, pattern, heads, points, grid.samples)


def _series(
    grid: Shape,
    family: str,
    dataset: str,
    kernel: str,
    pattern: str,
    heads: Heads,
    points: Sequence[tuple[int, int | None, float | None]],
    samples: int,
) -> Series:
    cases = tuple(
        Case(
            family,
            kernel,
            dataset,
            pattern,
            seqlen,
            sample,
            *heads,
            grid.head_dim,
            grid.dtype,
            pass_,
            block,
            density,
        )
        for seqlen, block, density in points
        for sample in range(samples)
        for pass_ in grid.passes
    )
    return Series(family, dataset, kernel, pattern, heads, cases)
