"""The answer of `longca project`: mechanisms on a number of GPUs, each pass on its own best topology."""

from collections.abc import Sequence
from dataclasses import dataclass

from longca.errors import LongcaError
from longca.names import unknown_name
from longca.parallel.clusters import Cluster
from longca.reporting.long import Row
from longca.reporting.scale.areas import Areas, Draw
from longca.reporting.scale.fit import Fit
from longca.reporting.scale.points import Point
from longca.reporting.scale.projection import Question, project
from longca.reporting.scale.sections import NOTE, topology_text
from longca.reporting.scale.tables import dataset_of, fitted, projected_row
from longca.reporting.sections import Section
from longca.study.axes import PASSES
from longca.units import Heads

_NOTHING = "–"


@dataclass(frozen=True)
class Asked:
    """What is asked of a study: a pattern over a local kernel, on so many GPUs of a cluster; tokens of each."""

    pattern: str
    kernel: str
    heads: Heads
    tokens: int
    cluster: Cluster
    gpus: int


def projected_section(asked: Asked, rows: Sequence[Row], draw: Draw, source: str) -> Section:
    """Every mechanism, the fastest of the first measured pass first. rows: what `source` measured on ranks.

    draw: its masks. Raises LongcaError naming the option where nothing was measured that the answer could stand on.
    """
    found = fitted(rows)
    if found is None:
        raise LongcaError(
            f"--study: {source}: nothing measured on ranks of a known GPU; right: longca measure --study {source}"
        )
    model, points = found
    _check(asked, model, source)
    areas, cluster = Areas(draw, rows), asked.cluster.with_inside(model.cluster.inside)
    by_pass = {
        question.pass_: {
            one.mechanism: projected_row(one) for one in project(model, areas, question, cluster, asked.gpus)
        }
        for question in _questions(asked, model, points, dataset_of(rows, asked.pattern))
    }
    return _section(asked, by_pass)


def _check(asked: Asked, model: Fit, source: str) -> None:
    patterns = {pattern for _, pattern, _ in model.kernels}
    if asked.pattern not in patterns:
        what = f"pattern measured on ranks in {source}"
        raise LongcaError(f"--pattern: {unknown_name(asked.pattern, patterns, what)}")
    kernels = {kernel for kernel, pattern, _ in model.kernels if pattern == asked.pattern}
    if asked.kernel not in kernels:
        what = f"kernel measured on {asked.pattern} on ranks in {source}"
        raise LongcaError(f"--kernel: {unknown_name(asked.kernel, kernels, what)}")


def _questions(asked: Asked, model: Fit, points: Sequence[Point], dataset: str) -> list[Question]:
    """One for each pass that was measured, of elements and a head dimension as they were."""
    own = (asked.kernel, asked.pattern)
    load = next(point.workload for point in points if (point.kernel, point.pattern) == own)
    place, shape = (*own, dataset), (asked.tokens, *asked.heads, load.head_dim, load.element_bytes)
    return [Question(*place, *shape, pass_) for pass_ in PASSES if (*own, pass_) in model.kernels]


def _section(asked: Asked, by_pass: dict[str, dict[str, Row]]) -> Section:
    mechanisms = list(next(iter(by_pass.values())))
    columns = ("on U x R", "TFLOP/s a GPU", "efficiency")
    headers = [f"{pass_.capitalize()} {name}" for pass_ in by_pass for name in columns]
    lines = tuple(
        (name, *(cell for rows in by_pass.values() for cell in _cells(rows[name]))) for name in mechanisms
    )
    best = {
        (line, 2 + len(columns) * number)
        for number, rows in enumerate(by_pass.values())
        for line, name in enumerate(mechanisms)
        if rows[name].get("tflops") == max(row.get("tflops") or 0.0 for row in rows.values())
    }
    title = (
        f"Modelled: {asked.pattern} on {asked.gpus} GPUs of {asked.cluster.name}, {asked.kernel}, heads {asked.heads}, "
        f"{asked.tokens} tokens a GPU"
    )
    reasons = dict.fromkeys(
        f"{name}: {row['reason']}."
        for rows in by_pass.values()
        for name, row in rows.items()
        if row["reason"]
    )
    note = " ".join((NOTE, *reasons))
    return Section(title, ("Mechanism", *headers), lines, frozenset(best), note=note)


def _cells(row: Row) -> tuple[str, str, str]:
    """U x R (x windows), TFLOP/s and efficiency of a row of the table `projection`."""
    if row.get("tflops") is None:
        return _NOTHING, _NOTHING, _NOTHING
    return topology_text(row), f"{row['tflops']:.0f}", f"{row['efficiency']:.2f}"
