"""Mechanisms on a number of GPUs nobody measured: the cost model over the rate of a measured kernel."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import geometric_mean

from longca.errors import LongcaError
from longca.flops import ELEMENT_BYTES
from longca.kernels.registry import kernel_names
from longca.parallel.clusters import Cluster
from longca.parallel.cost_model import KernelCost
from longca.reporting.advice.answer import Answer
from longca.reporting.advice.choices import MODELLED, Choice, measured_choice, ranked
from longca.reporting.advice.question import Question, cells_for, check_modelled, was_measured
from longca.reporting.cells import Cell, cells_of, devices
from longca.reporting.long import Row
from longca.reporting.scale.areas import Areas, Draw
from longca.reporting.scale.fit import Fit
from longca.reporting.scale.ground import Ground, clusters_of, dataset_of, fitted, ground_on
from longca.reporting.scale.level import error_of
from longca.reporting.scale.projection import Projected, project_together
from longca.reporting.words import plain


def modelled_answer(question: Question, rows: Sequence[Row], source: str, draw: Draw) -> Answer:
    """Each mechanism on its best topology of the question's GPUs as the model has it, and what the figures rest on.

    draw: the study's masks. Raises LongcaError, saying why, where so many tokens are not modelled, where no cluster of
    the measuring GPU is known, or where no kernel has a rate for every pass.
    """
    assert question.gpus is not None
    check_modelled(question)
    device, ground, error = _ground(question, rows, source)
    cluster = replace(ground.model.cluster, gpus_per_node=question.gpus_per_node)
    asked = ground.questions(question.tokens, question.heads, question.passes)
    found = project_together(ground.model, Areas(draw, rows), asked, cluster, question.gpus)
    choices = ranked([_choice(passes) for passes in found], error)
    return Answer(
        "mechanisms, modelled", plain(device), question.seqlen, choices, (_note(question, ground, cluster),)
    )


def _note(question: Question, ground: Ground, cluster: Cluster) -> str:
    links = ", ".join(
        f"{where} a node {'assumed' if getattr(cluster, where).assumed else 'measured'}"
        for where in ("inside", "between")
    )
    rests_on = (
        f"the measured rate of {ground.kernel} on each rank",
        ground.documents(question.seqlen),
        f"links of {cluster.name} ({links})",
        f"{question.gpus_per_node} GPUs a node",
        "one topology for both passes" if len(question.passes) > 1 else "",
    )
    return f"Modelled: {', '.join(filter(None, rests_on))}. No row of this was measured."


def _ground(question: Question, rows: Sequence[Row], source: str) -> tuple[str, Ground, float | None]:
    """The device, what figures rest on, and the model's error, where ranks tell of it.

    The rate is that of the fastest kernel on ranks; where none has one for every pass, of the fastest dense kernel.
    """
    known = fitted(rows)
    if known is None:
        return *_alone(question, rows, source, None), None
    model, points = known
    error = error_of(model, points)
    rates: dict[str, list[float]] = {}
    for (kernel, pattern, pass_), cost in model.kernels.items():
        if pattern == question.pattern and pass_ in question.passes:
            rates.setdefault(kernel, []).append(cost.flops_per_s)
    complete = {kernel: found for kernel, found in rates.items() if len(found) == len(question.passes)}
    if not complete:
        return *_alone(question, rows, source, model), error
    kernel = max(complete, key=lambda name: geometric_mean(complete[name]))
    device = _home([row for row in rows if row["family"] == "context_parallel"])[0]
    return device, ground_on(model, points, rows, kernel, question.pattern), error


def _alone(question: Question, rows: Sequence[Row], source: str, model: Fit | None) -> tuple[str, Ground]:
    """The rate of the fastest dense kernel that ranks can run, on a cluster of its GPU.

    With the links and frictions of `model`, where that is of the same cluster.
    """
    dense = cells_of([row for row in rows if row["family"] == "dense"])
    cells = cells_for(question, dense, source) if was_measured(question, dense) else []
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
    same = model is not None and model.cluster.name == cluster.name
    fit = replace(model, kernels=rates) if model and same else Fit(cluster, rates, {})
    dataset, elements = dataset_of(rows, question.pattern), ELEMENT_BYTES[place.dtype]
    return device, Ground(fit, kernel, question.pattern, dataset, place.head_dim, elements)


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


def _choice(passes: Sequence[Projected]) -> Choice:
    """A mechanism's passes, all on one topology, as one choice."""
    name, topology = passes[0].mechanism, passes[0].topology
    costs = [one.cost for one in passes if one.cost]
    if topology is None or len(costs) < len(passes):
        return Choice(name, MODELLED, passes[0].reason or "")
    total = sum(cost.total_s for cost in costs)
    work = sum((one.tflops or 0.0) * cost.total_s for one, cost in zip(passes, costs, strict=True))
    hidden = sum(cost.computation_s for cost in costs) / total
    windows = f" in {topology.windows} windows" if topology.windows > 1 else ""
    shape = f"heads over {topology.ulysses}, sequence over {topology.ring}{windows}"
    ms = total * 1e3
    return Choice(name, MODELLED, f"{shape}; {hidden:.0%} of the time computes", ms, ms, ms, work / total)
