"""Fitting the cost model: the link inside a node, each kernel's rate, and what overlap costs beyond the model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

import numpy as np

from longca.parallel.clusters import Cluster, Link
from longca.parallel.cost_model import Cost, KernelCost
from longca.reporting.scale.points import Point, on_ranks

# Kernel, pattern, pass.
KernelKey = tuple[str, str, str]


@dataclass(frozen=True)
class Fit:
    """The model's constants. friction: by mechanism, the whole as measured over the whole as modelled (median)."""

    cluster: Cluster
    kernels: Mapping[KernelKey, KernelCost]
    friction: Mapping[str, float]

    def modelled(self, point: Point) -> Cost | None:
        """A measured point as the model has it; None where its kernel was not fitted on its pattern and pass."""
        kernel = self.kernels.get(_key(point))
        return None if kernel is None else self.rubbed(point.mechanism, point.predicted(kernel, self.cluster))

    def rubbed(self, mechanism: str, cost: Cost) -> Cost:
        """A cost with the friction of its mechanism; where that was not measured, of those that were."""
        known = self.friction.get(mechanism) or (median(self.friction.values()) if self.friction else 1.0)
        return replace(cost, total_s=cost.total_s * known)


def fit(points: Sequence[Point], cluster: Cluster) -> Fit:
    """The constants that fit the points best; `cluster` gives those that no point tells of."""
    fitted = cluster.with_inside(_link(on_ranks(points), cluster))
    kernels: dict[KernelKey, KernelCost] = {}
    for kernel, pass_ in dict.fromkeys((point.kernel, point.workload.pass_) for point in points):
        own = [point for point in points if (point.kernel, point.workload.pass_) == (kernel, pass_)]
        kernels |= {(kernel, pattern, pass_): cost for pattern, cost in _kernel(own).items()}
    raw = Fit(fitted, kernels, {})
    ratios: dict[str, list[float]] = {}
    for point in on_ranks(points):
        cost = raw.modelled(point)
        assert cost is not None
        ratios.setdefault(point.mechanism, []).append(point.whole_s / cost.total_s)
    return replace(raw, friction={name: median(found) for name, found in ratios.items()})


def checked(points: Sequence[Point], cluster: Cluster) -> list[tuple[Point, Cost]]:
    """Every point on ranks with what a fit to all the others says of it, where they tell of its kernel."""
    found = []
    for point in on_ranks(points):
        others = fit([other for other in points if other is not point], cluster)
        cost = others.modelled(point)
        if cost is not None:
            found.append((point, cost))
    return found


def _key(point: Point) -> KernelKey:
    return point.kernel, point.pattern, point.workload.pass_


def _kernel(points: Sequence[Point]) -> dict[str, KernelCost]:
    """By pattern. Seconds = FLOPs / the pattern's rate + calls * a constant of all; it is not below 0.

    In relative least squares: a call of 1 ms counts as one of 100 ms.
    """
    patterns = list(dict.fromkeys(point.pattern for point in points))
    seconds = np.array([point.computation_s for point in points])
    flops = np.array(
        [[point.flops_a_rank * (point.pattern == name) for name in patterns] for point in points]
    )
    calls = np.array([[float(point.calls)] for point in points])
    columns = np.hstack([flops, calls]) / seconds[:, None]
    scale = columns.max(axis=0)
    solution = np.linalg.lstsq(columns / scale, np.ones(len(points)), rcond=None)[0] / scale
    if (solution[:-1] <= 0).any() or solution[-1] < 0:
        # No constant: each pattern's rate alone.
        solution[:-1] = columns[:, :-1].sum(axis=0) / np.square(columns[:, :-1]).sum(axis=0)
        solution[-1] = 0.0
    return {
        name: KernelCost(1 / float(x), float(solution[-1]))
        for name, x in zip(patterns, solution, strict=False)
    }


def _link(points: Sequence[Point], cluster: Cluster) -> Link:
    """Latency and bandwidth inside a node, from communication alone; the cluster's own where that was not measured."""
    inside = [
        point
        for point in points
        if point.topology.world_size <= cluster.gpus_per_node and point.communication_s > 0
    ]
    if not inside:
        return cluster.inside
    # Time is linear in both constants: each alone gives its column.
    latency, volume = (np.array([_alone(point, cluster, link) for point in inside]) for link in _UNITS)
    seconds = np.array([point.communication_s for point in inside])
    per_byte, per_message = _two(volume / seconds, latency / seconds)
    return Link(1 / per_byte, per_message, assumed=False)


# One second a message and nothing a byte; one second a byte and nothing a message.
_UNITS = (Link(float("inf"), 1.0, assumed=False), Link(1.0, 0.0, assumed=False))


def _alone(point: Point, cluster: Cluster, link: Link) -> float:
    kernel = KernelCost(float("inf"))
    return point.predicted(kernel, replace(cluster, inside=link, between=link)).communication_s


def _two(first: np.ndarray, second: np.ndarray) -> tuple[float, float]:
    """Non-negative x, y with first x + second y nearest to 1; x is above 0."""
    columns = np.stack([first, second], axis=1)
    scale = columns.max(axis=0, initial=0.0)
    scale[scale == 0] = 1.0
    x, y = np.linalg.lstsq(columns / scale, np.ones(len(first)), rcond=None)[0] / scale
    if x <= 0 or y < 0:
        return float(first.sum() / (first @ first)), 0.0
    return float(x), float(y)
