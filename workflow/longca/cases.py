"""Case: one thing to measure. Series: the cases that share a record file, and so a job."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

from longca.arrangement import Arrangement, arrangements, mechanisms_of
from longca.masks.patterns import PATTERNS
from longca.study.context_parallel import ContextParallelGrid
from longca.study.grids import DenseGrid, Shape, SparseGrid
from longca.study.model import Study
from longca.units import Heads

# The last fields of a case, which have no column of their own name in every family.
_ONE_FAMILY = ("block", "density_nominal", "arrangement")
# A length, and what else makes a case of a family.
_Point = tuple[int, dict[str, Any]]


@dataclass(frozen=True)
class Case:
    """One kernel on one mask, length, shape and pass.

    Lengths and blocks are in tokens; `block` and `density_nominal` are block-sparse's alone, `arrangement` context
    parallel's.
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
    arrangement: Arrangement | None = None

    def columns(self) -> dict[str, Any]:
        """The case as columns of its record: `pass` by its own name, those of one family only where it is of that."""
        names = [field.name for field in fields(self)][: -len(_ONE_FAMILY)]
        columns = {("pass" if name == "pass_" else name): getattr(self, name) for name in names}
        if self.family == "sparse":
            columns |= {"block": self.block, "density_nominal": self.density_nominal}
        return columns | (self.arrangement.columns() if self.arrangement else {})

    @property
    def world_size(self) -> int:
        """Ranks it is spread over, 1 where it is not."""
        return self.arrangement.world_size if self.arrangement else 1

    @property
    def mask_file(self) -> Path:
        """Where the case's mask or block map lies, below results/<study>/."""
        if self.family == "sparse":
            place = Path("blocks", self.pattern, str(self.seqlen), str(self.block), str(self.density_nominal))
            return place / str(self.kv_heads) / f"{self.sample}.npz"
        return Path("masks", self.dataset, self.pattern, str(self.seqlen), f"{self.sample}.json")


@dataclass(frozen=True)
class Series:
    """All lengths, samples and passes of a kernel on a pattern and heads: one record file, one job.

    Of context parallel, those of one mechanism and number of ranks, in all arrangements.
    """

    family: str
    dataset: str
    kernel: str
    pattern: str
    heads: Heads
    cases: tuple[Case, ...]
    mechanism: str | None = None
    world_size: int = 1

    @property
    def name(self) -> Path:
        """Where the series stands below records/ and journals/, without its suffix."""
        parts = [self.family, self.kernel, self.pattern, str(self.heads)]
        if self.family == "dense":
            parts.insert(1, self.dataset)
        if self.mechanism is not None:
            parts[1:1] = [self.dataset, self.mechanism]
            parts.append(str(self.world_size))
        return Path(*parts)

    @cached_property
    def mask_files(self) -> list[Path]:
        """The files of its masks below results/<study>/, each once, in the order of the cases."""
        return list(dict.fromkeys(case.mask_file for case in self.cases))


def study_series(study: Study) -> list[Series]:
    """Every series of a study, in the order of its config, with all its cases."""
    whole: dict[Path, Series] = {}
    for part in (part for grid in grid_series(study) for part in grid):
        earlier = whole.get(part.name)
        whole[part.name] = replace(part, cases=earlier.cases + part.cases) if earlier else part
    return list(whole.values())


def grid_series(study: Study) -> list[list[Series]]:
    """For each grid of the config, in its order, its series with the cases that no earlier grid has."""
    of_kernels = [*map(_dense, study.dense), *map(_sparse, study.sparse)]
    grids = [*of_kernels, *map(_context_parallel, study.context_parallel)]
    seen: set[Case] = set()
    found = []
    for grid in grids:
        parts = [replace(one, cases=tuple(case for case in one.cases if case not in seen)) for one in grid]
        seen.update(case for part in parts for case in part.cases)
        found.append([part for part in parts if part.cases])
    return found


def _dense(grid: DenseGrid) -> Iterator[Series]:
    for kernel in grid.kernels:
        points: list[_Point] = [(seqlen, {}) for seqlen in grid.kernel_seqlens.get(kernel, grid.seqlens)]
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
            points = [
                (seqlen, {"block": block, "density_nominal": density})
                for seqlen in grid.seqlens
                for block in grid.blocks[pattern]
                for density in grid.densities
            ]
            for heads in grid.heads:
                yield _series(grid, "sparse", "auto", kernel, pattern, heads, points, grid.samples)


def _context_parallel(grid: ContextParallelGrid) -> Iterator[Series]:
    """All mechanisms of one mask beside each other: they share its oracle."""
    for kernel, world_size, pattern in product(grid.kernels, grid.world_sizes, grid.patterns):
        samples = grid.samples if PATTERNS[pattern].is_drawn else 1
        datasets = grid.datasets if PATTERNS[pattern].takes_documents else ("auto",)
        for dataset, heads, mechanism in product(datasets, grid.heads, mechanisms_of(grid, world_size)):
            points: list[_Point] = [
                (tokens * world_size, {"arrangement": arrangement})
                for tokens in grid.tokens_per_rank
                for arrangement in arrangements(grid, mechanism, pattern, world_size)
            ]
            one = _series(grid, "context_parallel", dataset, kernel, pattern, heads, points, samples)
            yield replace(one, mechanism=mechanism, world_size=world_size)


def _series(
    grid: Shape,
    family: str,
    dataset: str,
    kernel: str,
    pattern: str,
    heads: Heads,
    points: Sequence[_Point],
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
            **more,
        )
        for seqlen, more in points
        for sample in range(samples)
        for pass_ in grid.passes
    )
    return Series(family, dataset, kernel, pattern, heads, cases)
