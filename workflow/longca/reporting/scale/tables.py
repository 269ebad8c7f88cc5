"""The tables of the cost model: its constants, how far it is off, and what it projects; all of it marked modelled."""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import pyarrow as pa

from longca.parallel.topology import Topology
from longca.reporting.long import Row
from longca.reporting.scale.areas import Areas, Draw
from longca.reporting.scale.fit import Fit
from longca.reporting.scale.ground import dataset_of, fitted, home_clusters
from longca.reporting.scale.left_out import checked
from longca.reporting.scale.points import Point
from longca.reporting.scale.projection import WORLD_SIZES, Projected, Question, project
from longca.reporting.scale.published import CLUSTER as PUBLISHED_CLUSTER
from longca.reporting.scale.published import beside_published

_TEXT, _WHOLE, _REAL = pa.string(), pa.int64(), pa.float64()
_SHAPE = {name: _WHOLE for name in ("topology_ulysses", "topology_ring", "topology_windows")}
COST_MODEL_COLUMNS = {
    **dict.fromkeys(("what", "name", "origin", "mechanism", "pattern", "pass"), _TEXT),
    "world_size": _WHOLE,
    **_SHAPE,
    "seqlen": _WHOLE,
    **dict.fromkeys(("measured", "modelled", "ratio"), _REAL),
    "unit": _TEXT,
}
PROJECTION_COLUMNS = {
    **dict.fromkeys(("origin", "cluster", "kernel", "pattern", "pass"), _TEXT),
    **dict.fromkeys(("q_heads", "kv_heads", "head_dim", "tokens_per_rank", "world_size"), _WHOLE),
    "mechanism": _TEXT,
    **_SHAPE,
    "reason": _TEXT,
    **dict.fromkeys(("tflops", "efficiency", "computation_ms", "communication_ms", "exposed_ms"), _REAL),
}
MODELLED, ASSUMED, FITTED = "modelled", "assumed", "fitted"


def cost_model_rows(rows: Sequence[Row]) -> list[Row]:
    """Constants, points left out, and published figures beside the model."""
    found = fitted(rows)
    own = [] if found is None else [*_constants(found[0]), *_left_out(*found)]
    return [*own, *_published()]


def projection_rows(rows: Sequence[Row], draw: Draw) -> list[Row]:
    """Every mechanism's best topology on 8 to 1024 GPUs of each cluster, for what was measured.

    draw: the study's masks, at lengths that it did not measure.
    """
    found = fitted(rows)
    if found is None:
        return []
    model, points = found
    areas = Areas(draw, rows)
    return [
        projected_row(one)
        for cluster in home_clusters(rows)
        for question in _questions(rows, points)
        for world_size in WORLD_SIZES
        for one in project(model, areas, question, cluster.with_inside(model.cluster.inside), world_size)
    ]


def _questions(rows: Sequence[Row], points: Sequence[Point]) -> list[Question]:
    """What the study measured, at each number of tokens a rank."""
    return list(
        dict.fromkeys(
            Question(
                point.kernel,
                point.pattern,
                dataset_of(rows, point.pattern),
                point.workload.seqlen // point.topology.world_size,
                point.workload.q_heads,
                point.workload.kv_heads,
                point.workload.head_dim,
                point.workload.element_bytes,
                point.workload.pass_,
            )
            for point in points
        )
    )


def _constants(model: Fit) -> Iterator[Row]:
    for where, link in (("inside a node", model.cluster.inside), ("between nodes", model.cluster.between)):
        common = {"what": "constant", "origin": ASSUMED if link.assumed else FITTED}
        yield common | {
            "name": f"bandwidth {where}",
            "modelled": link.bytes_per_s / 1e9,
            "unit": "GB/s",
        }
        yield common | {"name": f"latency {where}", "modelled": link.latency_s * 1e6, "unit": "µs"}
    constants = {(kernel, pass_): cost.call_s for (kernel, _, pass_), cost in model.kernels.items()}
    for (kernel, pattern, pass_), cost in model.kernels.items():
        common = {"what": "constant", "origin": FITTED, "pattern": pattern, "pass": pass_}
        yield common | {"name": f"rate of {kernel}", "modelled": cost.flops_per_s / 1e12, "unit": "TFLOP/s"}
    for (kernel, pass_), call_s in constants.items():
        common = {"what": "constant", "origin": FITTED, "pass": pass_}
        yield common | {"name": f"constant of a call of {kernel}", "modelled": call_s * 1e6, "unit": "µs"}
    for mechanism, friction in model.friction.items():
        common = {"what": "constant", "origin": FITTED, "mechanism": mechanism}
        yield common | {"name": "measured over modelled time", "modelled": friction, "unit": "ratio"}


def _left_out(model: Fit, points: Sequence[Point]) -> Iterator[Row]:
    for point, cost in checked(points, model.cluster):
        yield {
            "what": "left out",
            "origin": MODELLED,
            "mechanism": point.mechanism,
            "pattern": point.pattern,
            "pass": point.workload.pass_,
            "world_size": point.topology.world_size,
            **_topology(point.topology),
            "seqlen": point.workload.seqlen,
            "measured": point.whole_s * 1e3,
            "modelled": cost.total_s * 1e3,
            "ratio": cost.total_s / point.whole_s,
            "unit": "ms",
        }


@cache
def _published() -> tuple[Row, ...]:
    return tuple(
        {
            "what": "published",
            "name": PUBLISHED_CLUSTER,
            "origin": MODELLED,
            "mechanism": one.anchor.method,
            "pattern": one.anchor.pattern,
            "pass": one.anchor.pass_,
            "world_size": one.anchor.gpus,
            **_topology(one.topology),
            "seqlen": one.anchor.seqlen,
            "measured": one.anchor.tflops_per_gpu,
            "modelled": one.modelled,
            "ratio": one.ratio,
            "unit": "TFLOP/s a GPU",
        }
        for one in beside_published()
    )


def projected_row(one: Projected) -> Row:
    """A row of the table `projection`."""
    question = one.question
    row: dict[str, Any] = {
        "origin": MODELLED,
        "cluster": one.cluster,
        "kernel": question.kernel,
        "pattern": question.pattern,
        "pass": question.pass_,
        "q_heads": question.q_heads,
        "kv_heads": question.kv_heads,
        "head_dim": question.head_dim,
        "tokens_per_rank": question.tokens,
        "world_size": one.world_size,
        "mechanism": one.mechanism,
        "reason": one.reason,
    }
    if one.topology is None or one.cost is None:
        return row
    cost = one.cost
    return row | {
        **_topology(one.topology),
        "tflops": one.tflops,
        "efficiency": cost.efficiency,
        "computation_ms": cost.computation_s * 1e3,
        "communication_ms": cost.communication_s * 1e3,
        "exposed_ms": cost.exposed_s * 1e3,
    }


def _topology(topology: Topology) -> Row:
    return {f"topology_{name}": getattr(topology, name) for name in ("ulysses", "ring", "windows")}
