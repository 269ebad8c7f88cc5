"""Mechanisms on a number of GPUs nobody measured: the cost model over the rate of a measured kernel."""

from collections.abc import Sequence
from dataclasses import replace
from statistics import geometric_mean

from longca.kernels.registry import kernel_names
from longca.parallel.clusters import Cluster
from longca.parallel.cost_model import KernelCost
from longca.reporting.advice.choices import MODELLED, Choice
from longca.reporting.advice.question import Question, cells_for
from longca.reporting.cells import Cell, cells_of
from longca.reporting.long import Row
from longca.reporting.scale import projection
from longca.reporting.scale.fit import Fit
from longca.reporting.scale.points import ELEMENT_BYTES
from longca.reporting.scale.tables import fitted, home_clusters


def modelled_choices(
    question: Question, rows: Sequence[Row], source: str
) -> tuple[list[Choice], tuple[str, ...]]:
    """Each mechanism on its best topology as the model has it, and what the figures rest on.

    Nothing where no cluster of the measuring GPU is known, or where no kernel has a rate for every pass.
    """
    model, rate = _model(question, rows, source)
    if model is None or question.gpus is None:
        return [], ()
    cluster = replace(model.cluster, gpus_per_node=question.gpus_per_node)
    kernel = rate.kernel
    asked = [
        projection.Question(
            kernel,
            question.pattern,
            rate.place.dataset,
            -(-question.seqlen // question.gpus),
            question.heads.query,
            question.heads.kv,
            rate.place.head_dim,
            ELEMENT_BYTES[rate.place.dtype],
            pass_,
        )
        for pass_ in question.passes
    ]
    found = [projection.project(model, one, cluster, question.gpus) for one in asked]
    names = [one.mechanism for one in found[0]]
    choices = [
        _choice(name, [one for listed in found for one in listed if one.mechanism == name]) for name in names
    ]
    links = ", ".join(
        f"{where} a node {'assumed' if getattr(cluster, where).assumed else 'measured'}"
        for where in ("inside", "between")
    )
    return choices, (
        f"Modelled: the measured rate of {kernel} on each rank, links of {cluster.name} ({links}), "
        f"{question.gpus_per_node} GPUs a node. No row of this was measured.",
    )


def _model(question: Question, rows: Sequence[Row], source: str) -> tuple[Fit | None, Cell]:
    """The model fitted to the study's context-parallel rows, else one of the fastest dense kernel's rate alone."""
    cells = cells_for(question, cells_of([row for row in rows if row["family"] == "dense"]), source)
    best = _fastest(question, cells)
    own = [row for row in rows if row["family"] == "context_parallel"]
    known = fitted(own) if own else None
    if known and best:
        kernels = dict(known[0].kernels)
        fits = {name for name, pattern, _ in kernels if pattern == question.pattern}
        complete = [n for n in fits if all((n, question.pattern, p) in kernels for p in question.passes)]
        if complete:
            kernel = max(
                complete,
                key=lambda n: geometric_mean(
                    kernels[n, question.pattern, p].flops_per_s for p in question.passes
                ),
            )
            return known[0], replace(best, kernel=kernel)
    clusters: list[Cluster] = home_clusters(rows)
    if not clusters or best is None:
        return None, cells[0]
    rates = {
        (cell.kernel, question.pattern, cell.place.pass_): KernelCost((cell.throughput() or 0.0) * 1e12)
        for cell in cells
        if cell.kernel == best.kernel and cell.ok
    }
    return Fit(clusters[0], rates, {}), best


def _fastest(question: Question, cells: Sequence[Cell]) -> Cell | None:
    """A cell of the kernel that ranks can run, is ok in every pass asked for and takes the least time over them."""
    on_ranks = kernel_names("context_parallel")
    by_kernel: dict[str, list[Cell]] = {}
    for cell in cells:
        if cell.ok and cell.kernel in on_ranks and cell.place.pass_ in question.passes:
            by_kernel.setdefault(cell.kernel, []).append(cell)
    whole = [own for own in by_kernel.values() if len({c.place.pass_ for c in own}) == len(question.passes)]
    if not whole:
        return None
    return min(whole, key=lambda own: sum(cell.latency("p50") or 0.0 for cell in own))[0]


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
