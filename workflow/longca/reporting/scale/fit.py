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
# Every n-th point is left out of a fit to check it.
LEFT_OUT = 4


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
    kernels = {key: _kernel([point for point in points if _key(point) == key]) for key in _keys(points)}
    raw = Fit(fitted, kernels, {})
    ratios: dict[str, list[float]] = {}
    for point in on_ranks(points):
        cost = raw.modelled(point)
        assert cost is not None
        ratios.setdefault(point.mechanism, []).append(point.whole_s / cost.total_s)
    return replace(raw, friction={name: median(found) for name, found in ratios.items()})


def checked(points: Sequence[Point], cluster: Cluster) -> list[tuple[Point, Cost]]:
    """Every point on ranks with what a fit without it and a quarter of the others says of it."""
    listed = on_ranks(points)
    alone = [point for point in points if point not in listed]
    found = []
    for first in range(min(LEFT_OUT, len(listed))):
        out = listed[first::LEFT_OUT]
        others = fit([*alone, *(point for point in listed if point not in out)], cluster)
        found += [(point, cost) for point in out if (cost := others.modelled(point)) is not None]
    return found


def _key(point: Point) -> KernelKey:
    return point.kernel, point.pattern, point.workload.pass_


def _keys(points: Sequence[Point]) -> list[KernelKey]:
    return list(dict.fromkeys(_key(point) for point in points))


def _kernel(points: Sequence[Point]) -> KernelCost:
    """Seconds = FLOPs / rate + calls * constant, in relative least squares; the constant is not below 0."""
    flops = np.array([point.flops_a_rank for point in points])
    calls = np.array([float(point.calls) for point in points])
    seconds = np.array([point.computation_s for point in points])
    per_flop, constant = _two(flops / seconds, calls / seconds)
    return KernelCost(1 / per_flop, constant)


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
