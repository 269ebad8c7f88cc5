"""Mechanisms on a number of GPUs nobody measured: the cost model over the rate of a measured kernel."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import geometric_mean

from longca.errors import LongcaError
from longca.flops import ELEMENT_BYTES
from longca.kernels.registry import kernel_names
from longca.parallel.clusters import Cluster
from longca.parallel.cost_model import KernelCost
from longca.reporting.advice.answer import Answer
from longca.reporting.advice.choices import MODELLED, Choice, measured_choice, ranked
from longca.reporting.advice.question import Question, cells_for, was_measured
from longca.reporting.cells import Cell, cells_of, devices
from longca.reporting.long import Row
from longca.reporting.scale import projection
from longca.reporting.scale.areas import Areas, Draw
from longca.reporting.scale.fit import Fit
from longca.reporting.scale.tables import clusters_of, dataset_of, fitted
from longca.reporting.words import plain


@dataclass(frozen=True)
class _Ground:
    """What figures rest on: a model with a rate of a kernel in every pass asked for, and what it was measured on."""

    model: Fit
    kernel: str
    device: str
    head_dim: int
    element_bytes: int


def modelled_answer(question: Question, rows: Sequence[Row], source: str, draw: Draw) -> Answer:
    """Each mechanism on its best topology of the question's GPUs as the model has it, and what the figures rest on.

    draw: the study's masks. Raises LongcaError, saying why, where no cluster of the measuring GPU is known, or where
    no kernel has a rate for every pass.
    """
    assert question.gpus is not None
    dense = cells_of([row for row in rows if row["family"] == "dense"])
    cells = cells_for(question, dense, source) if was_measured(question, dense) else []
    ground = _fitted(question, rows) or _alone(question, rows, cells)
    # The documents that kernels are ranked on beside it; those of the ranks where none was measured.
    dataset = cells[0].place.dataset if cells else dataset_of(rows, question.pattern)
    cluster = replace(ground.model.cluster, gpus_per_node=question.gpus_per_node)
    shape = (-(-question.seqlen // question.gpus), *question.heads, ground.head_dim, ground.element_bytes)
    areas, place = Areas(draw, rows), (ground.kernel, question.pattern, dataset)
    asked = [projection.Question(*place, *shape, pass_) for pass_ in question.passes]
    found = [projection.project(ground.model, areas, one, cluster, question.gpus) for one in asked]
    names = [one.mechanism for one in found[0]]
    choices = [
        _choice(name, [one for listed in found for one in listed if one.mechanism == name]) for name in names
    ]
    links = ", ".join(
        f"{where} a node {'assumed' if getattr(cluster, where).assumed else 'measured'}"
        for where in ("inside", "between")
    )
    note = (
        f"Modelled: the measured rate of {ground.kernel} on each rank, links of {cluster.name} ({links}), "
        f"{question.gpus_per_node} GPUs a node. No row of this was measured."
    )
    return Answer("mechanisms, modelled", plain(ground.device), question.seqlen, ranked(choices), (note,))


def _fitted(question: Question, rows: Sequence[Row]) -> _Ground | None:
    """The model fitted to the study's ranks and its fastest kernel; None where it has no rate for every pass."""
    own = [row for row in rows if row["family"] == "context_parallel"]
    known = fitted(own)
    if known is None:
        return None
    model, points = known
    rates: dict[str, list[float]] = {}
    for (kernel, pattern, pass_), cost in model.kernels.items():
        if pattern == question.pattern and pass_ in question.passes:
            rates.setdefault(kernel, []).append(cost.flops_per_s)
    complete = {kernel: found for kernel, found in rates.items() if len(found) == len(question.passes)}
    if not complete:
        return None
    kernel = max(complete, key=lambda name: geometric_mean(complete[name]))
    load = next(p.workload for p in points if (p.kernel, p.pattern) == (kernel, question.pattern))
    return _Ground(model, kernel, _home(own)[0], load.head_dim, load.element_bytes)


def _alone(question: Question, rows: Sequence[Row], cells: Sequence[Cell]) -> _Ground:
    """The rate of the fastest dense kernel that ranks can run, on a cluster of its GPU."""
    device, cluster = _home(rows)
    by_kernel = _by_kernel(question, [cell for cell in cells if cell.place.device == device])
    whole = [own for own in by_kernel.values() if all(cell and cell.ok for cell in own.values())]
    if not whole:
        reasons = [f"{name}: {measured_choice(name, own).why}" for name, own in by_kernel.items()]
        why = f"no kernel that ranks can run is ok on {question.pattern} in {' and '.join(question.passes)}"
        raise LongcaError("; ".join([why, *reasons]))
    best = min(
        ([cell for cell in own.values() if cell] for own in whole),
        key=lambda own: sum(cell.latency("p50") or 0.0 for cell in own),
    )
    kernel, place = best[0].kernel, best[0].place
    rates = {
        (kernel, question.pattern, cell.place.pass_): KernelCost((cell.throughput() or 0.0) * 1e12)
        for cell in best
    }
    return _Ground(Fit(cluster, rates, {}), kernel, device, place.head_dim, ELEMENT_BYTES[place.dtype])


def _home(rows: Sequence[Row]) -> tuple[str, Cluster]:
    """The first device that is the GPU of a cluster, and that cluster. Raises LongcaError where none is."""
    for device in devices(rows):
        for cluster in clusters_of(device):
            return device, cluster
    names = ", ".join(plain(device) for device in devices(rows))
    raise LongcaError(f"{names} is the GPU of no cluster that is known")


def _by_kernel(question: Question, cells: Sequence[Cell]) -> Mapping[str, Mapping[str, Cell | None]]:
    """The kernels that ranks can run, each with its cell of every pass asked for."""
    on_ranks = kernel_names("context_parallel")
    found: dict[str, dict[str, Cell | None]] = {}
    for cell in cells:
        if cell.kernel in on_ranks and cell.place.pass_ in question.passes:
            found.setdefault(cell.kernel, dict.fromkeys(question.passes))[cell.place.pass_] = cell
    return found


def _choice(name: str, passes: Sequence[projection.Projected]) -> Choice:
    reason = next((one.reason for one in passes if one.cost is None), None)
    if reason is not None:
        return Choice(name, MODELLED, reason)
    seconds = [one.cost.total_s for one in passes if one.cost]
    work = sum((one.tflops or 0.0) * second for one, second in zip(passes, seconds, strict=True))
    ms, total = sum(seconds) * 1e3, sum(seconds)
    shapes = dict.fromkeys(_shape(one) for one in passes)
    hidden = sum(one.cost.computation_s for one in passes if one.cost) / total
    why = f"{' and '.join(shapes)}; {hidden:.0%} of the time computes"
    return Choice(name, MODELLED, why, ms, ms, ms, work / total)


def _shape(one: projection.Projected) -> str:
    topology = one.topology
    assert topology is not None
    windows = f" in {topology.windows} windows" if topology.windows > 1 else ""
    return f"heads over {topology.ulysses}, sequence over {topology.ring}{windows}"
