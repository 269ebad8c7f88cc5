"""Fitting the cost model: the link inside a node, each kernel's rate, and what overlap costs beyond the model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

import numpy as np

from longca.parallel.clusters import Cluster, Link
from longca.parallel.cost_model import Cost, KernelCost
from longca.reporting.scale.points import Point, on_ranks

# Between calls that differ by less in their FLOPs, what a kernel is slower at for another reason would pass for its
# constant, and rates would come out above what was ever measured.
_APART = 4.0

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
        kernel = self.kernels.get(key_of(point))
        return None if kernel is None else self.rubbed(point.mechanism, point.predicted(kernel, self.cluster))

    def rubbed(self, mechanism: str, cost: Cost) -> Cost:
        """A cost with the friction of its mechanism; where that was not measured, of those that were.

        No pass takes less than its computation: a friction below 1 says that the model exposes too much of what is
        sent, not that the computation is faster than it was measured.
        """
        known = self.friction.get(mechanism) or (median(self.friction.values()) if self.friction else 1.0)
        return replace(cost, total_s=max(cost.computation_s, cost.total_s * known))


def fit(points: Sequence[Point], cluster: Cluster) -> Fit:
    """The constants that fit the points best; `cluster` gives those that no point tells of."""
    inside = points_inside(points, cluster)
    fitted = cluster.with_inside(link(link_equations(inside, cluster), cluster))
    kernels: dict[KernelKey, KernelCost] = {}
    for kernel, pass_ in dict.fromkeys((point.kernel, point.workload.pass_) for point in points):
        own = [point for point in points if (point.kernel, point.workload.pass_) == (kernel, pass_)]
        kernels |= kernel_costs(own)
    ratios: dict[str, list[float]] = {}
    for point in on_ranks(points):
        ratios.setdefault(point.mechanism, []).append(measured_over_modelled(point, kernels, fitted))
    return Fit(fitted, kernels, {name: median(found) for name, found in ratios.items()})


def key_of(point: Point) -> KernelKey:
    """What of a fit's kernels a point is of."""
    return point.kernel, point.pattern, point.workload.pass_


def measured_over_modelled(point: Point, kernels: Mapping[KernelKey, KernelCost], cluster: Cluster) -> float:
    """The whole of a point over what the model says without friction."""
    return point.whole_s / point.predicted(kernels[key_of(point)], cluster).total_s


def kernel_costs(points: Sequence[Point]) -> dict[KernelKey, KernelCost]:
    """The costs of one kernel and pass, by pattern, from its points, of which there is one at least.

    Seconds = FLOPs / the pattern's rate + calls * a constant of all patterns, which is not below 0, and 0 where calls
    are too alike to tell it from a rate. In relative least squares: a call of 1 ms counts as one of 100 ms.
    """
    patterns = list(dict.fromkeys(point.pattern for point in points))
    seconds = np.array([point.computation_s for point in points])
    of_pattern = np.array([[point.pattern == name for name in patterns] for point in points])
    flops = np.array([[point.flops_a_rank] for point in points]) * of_pattern
    calls = np.array([[float(point.calls)] for point in points])
    columns = np.hstack([flops, calls]) / seconds[:, None]
    scale = columns.max(axis=0)
    solution = np.linalg.lstsq(columns / scale, np.ones(len(points)), rcond=None)[0] / scale
    if _alike(points) or (solution[:-1] <= 0).any() or solution[-1] < 0:
        # No constant: each pattern's rate alone.
        solution[:-1] = columns[:, :-1].sum(axis=0) / np.square(columns[:, :-1]).sum(axis=0)
        solution[-1] = 0.0
    kernel, pass_ = points[0].kernel, points[0].workload.pass_
    return {
        (kernel, name, pass_): KernelCost(1 / float(x), float(solution[-1]))
        for name, x in zip(patterns, solution, strict=False)
    }


def _alike(points: Sequence[Point]) -> bool:
    """Whether no pattern has calls of sizes _APART or further apart."""
    sizes: dict[str, list[float]] = {}
    for point in points:
        sizes.setdefault(point.pattern, []).append(point.flops_a_rank / point.calls)
    return all(max(found) < _APART * min(found) for found in sizes.values())


def points_inside(points: Sequence[Point], cluster: Cluster) -> list[Point]:
    """Those that tell of the link inside a node: they communicate, and their ranks are within one."""
    return [
        point
        for point in on_ranks(points)
        if point.topology.world_size <= cluster.gpus_per_node and point.communication_s > 0
    ]


def link_equations(points: Sequence[Point], cluster: Cluster) -> np.ndarray:
    """(2, points inside a node): what a second a byte, and a second a message, come to over each's communication.

    Time is linear in both constants: each alone gives its row.
    """
    return np.array(
        [[_alone(point, cluster, unit) / point.communication_s for point in points] for unit in _UNITS]
    )


def link(equations: np.ndarray, cluster: Cluster) -> Link:
    """Latency and bandwidth inside a node from columns of `link_equations`; without any, the cluster's own."""
    if not equations.size:
        return cluster.inside
    per_byte, per_message = _two(*equations)
    return Link(1 / per_byte, per_message, assumed=False)


# One second a byte and nothing a message; one second a message and nothing a byte.
_UNITS = (Link(1.0, 0.0, assumed=False), Link(float("inf"), 1.0, assumed=False))


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
