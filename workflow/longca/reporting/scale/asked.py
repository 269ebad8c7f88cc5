"""The answer of `longca project`: mechanisms on a number of GPUs, each pass on its own best topology."""

from collections.abc import Sequence
from dataclasses import dataclass

from longca.errors import LongcaError
from longca.names import unknown_name
from longca.parallel.clusters import Cluster
from longca.reporting.long import Row
from longca.reporting.scale.areas import Areas, Draw
from longca.reporting.scale.fit import Fit
from longca.reporting.scale.ground import check_not_block_sparse, fitted, ground_on
from longca.reporting.scale.lengths import reason_against
from longca.reporting.scale.level import error_of, level_with_best, level_words, listed
from longca.reporting.scale.projection import project
from longca.reporting.scale.sections import NOTE, modelled_ms, topology_text
from longca.reporting.scale.tables import projected_row
from longca.reporting.sections import Section
from longca.reporting.words import digits
from longca.study.axes import PASSES
from longca.units import Heads

_NOTHING = "–"
_APART = "Each pass stands by itself, on its own best topology; one for both: longca advise."


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
    check_not_block_sparse(asked.pattern)
    unmodelled = reason_against(asked.tokens, asked.gpus)
    if unmodelled:
        raise LongcaError(f"--tokens: {unmodelled}")
    found = fitted(rows)
    if found is None:
        raise LongcaError(
            f"--study: {source}: nothing measured on ranks of a known GPU; right: longca measure --study {source}"
        )
    model, points = found
    _check(asked, model, source)
    ground = ground_on(model, points, rows, asked.kernel, asked.pattern)
    areas, cluster = Areas(draw, rows), asked.cluster.with_inside(model.cluster.inside)
    # The passes that were measured.
    passes = [pass_ for pass_ in PASSES if (asked.kernel, asked.pattern, pass_) in model.kernels]
    by_pass = {
        question.pass_: {
            one.mechanism: projected_row(one) for one in project(model, areas, question, cluster, asked.gpus)
        }
        for question in ground.questions(asked.tokens, asked.heads, passes)
    }
    return _section(asked, by_pass, ground.documents(asked.tokens * asked.gpus), error_of(model, points))


def _check(asked: Asked, model: Fit, source: str) -> None:
    patterns = {pattern for _, pattern, _ in model.kernels}
    if asked.pattern not in patterns:
        what = f"pattern measured on ranks in {source}"
        raise LongcaError(f"--pattern: {unknown_name(asked.pattern, patterns, what)}")
    kernels = {kernel for kernel, pattern, _ in model.kernels if pattern == asked.pattern}
    if asked.kernel not in kernels:
        what = f"kernel measured on {asked.pattern} on ranks in {source}"
        raise LongcaError(f"--kernel: {unknown_name(asked.kernel, kernels, what)}")


def _section(
    asked: Asked, by_pass: dict[str, dict[str, Row]], documents: str, error: float | None
) -> Section:
    mechanisms = list(next(iter(by_pass.values())))
    columns = ("on U x R", "TFLOP/s a GPU", "efficiency")
    headers = [f"{pass_.capitalize()} {name}" for pass_ in by_pass for name in columns]
    lines = tuple(
        (name, *(cell for rows in by_pass.values() for cell in _cells(rows[name]))) for name in mechanisms
    )
    ahead = {pass_: _ahead(rows, error) for pass_, rows in by_pass.items()}
    best = {
        (line, 2 + len(columns) * number)
        for number, names in enumerate(ahead.values())
        for line, name in enumerate(mechanisms)
        if name in names
    }
    place = f"Modelled: {asked.pattern} on {asked.gpus} GPUs of {asked.cluster.name}"
    what = (asked.kernel, f"heads {asked.heads}", f"{asked.tokens} tokens a GPU", documents)
    title = ", ".join((place, *filter(None, what)))
    reasons = dict.fromkeys(
        f"{name}: {row['reason']}."
        for rows in by_pass.values()
        for name, row in rows.items()
        if row["reason"]
    )
    level = [
        f"{pass_.capitalize()}: {listed(names)} are level: {level_words(error)}."
        for pass_, names in ahead.items()
        if len(names) > 1
    ]
    apart = [_APART] if len(by_pass) > 1 else []
    note = " ".join((NOTE, *apart, *level, *reasons))
    return Section(title, ("Mechanism", *headers), lines, frozenset(best), note=note)


def _ahead(rows: dict[str, Row], error: float | None) -> list[str]:
    """The fastest mechanism of a pass and those level with it; none where none can run."""
    times = {name: modelled_ms(row) for name, row in rows.items() if row.get("tflops") is not None}
    return level_with_best(times, error) if times else []


def _cells(row: Row) -> tuple[str, str, str]:
    """U x R (x windows), TFLOP/s and efficiency of a row of the table `projection`."""
    if row.get("tflops") is None:
        return _NOTHING, _NOTHING, _NOTHING
    return topology_text(row), digits(row["tflops"]), f"{row['efficiency']:.2f}"
