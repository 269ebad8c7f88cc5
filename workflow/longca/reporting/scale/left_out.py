"""The check of a fit: what a fit to all other points says of each one, refitting only what that one tells of."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TypeVar

import numpy as np

from longca.parallel.clusters import Cluster
from longca.parallel.cost_model import Cost, KernelCost
from longca.reporting.scale.fit import (
    Fit,
    KernelKey,
    fit,
    kernel_costs,
    key_of,
    link,
    link_equations,
    measured_over_modelled,
    points_inside,
)
from longca.reporting.scale.points import Point, on_ranks

_Group = TypeVar("_Group", bound=Hashable)


def checked(points: Sequence[Point], cluster: Cluster) -> list[tuple[Point, Cost]]:
    """Every point on ranks with what a fit to all the others says of it, where they tell of its kernel.

    A point tells of the link only inside a node, of the rates of its own kernel and pass, and of its mechanism's
    friction: the rest of a fit to the others is the fit to all, number by number.
    """
    whole = _Whole.of(points, cluster)
    found = [(point, whole.modelled_by_others(point)) for point in on_ranks(points)]
    return [(point, cost) for point, cost in found if cost is not None]


@dataclass(frozen=True)
class _Whole:
    """All points, grouped, and the fit to them; by a point's identity its column of the link's equations, its ratio."""

    points: Sequence[Point]
    of_kernel: Mapping[tuple[str, str], list[Point]]
    of_mechanism: Mapping[str, list[Point]]
    cluster: Cluster
    fit: Fit
    inside: Mapping[int, int]
    equations: np.ndarray
    ratios: Mapping[int, float]

    @classmethod
    def of(cls, points: Sequence[Point], cluster: Cluster) -> "_Whole":
        whole, inside, spread = fit(points, cluster), points_inside(points, cluster), on_ranks(points)
        return cls(
            points,
            _grouped((_kernel_and_pass(point), point) for point in points),
            _grouped((point.mechanism, point) for point in spread),
            cluster,
            whole,
            {id(point): column for column, point in enumerate(inside)},
            link_equations(inside, cluster),
            {id(point): measured_over_modelled(point, whole.kernels, whole.cluster) for point in spread},
        )

    def modelled_by_others(self, point: Point) -> Cost | None:
        """What they say of `point`; None where none of them is of its kernel on its pattern and pass."""
        kernels, cluster = self._kernels_without(point), self._cluster_without(point)
        if key_of(point) not in kernels:
            return None
        others = _without(point, self.of_mechanism[point.mechanism])
        if not others:
            # Its friction is then that of all other mechanisms.
            return fit(_without(point, self.points), self.cluster).modelled(point)
        # Ratios are computed anew only where the point told of what they stand on.
        own = None if id(point) in self.inside else _kernel_and_pass(point)
        ratios = [
            measured_over_modelled(other, kernels, cluster)
            if own is None or own == _kernel_and_pass(other)
            else self.ratios[id(other)]
            for other in others
        ]
        return Fit(cluster, kernels, {point.mechanism: median(ratios)}).modelled(point)

    def _kernels_without(self, point: Point) -> Mapping[KernelKey, KernelCost]:
        own = self.of_kernel[_kernel_and_pass(point)]
        gone = {key_of(one) for one in own}
        rest = _without(point, own)
        kept = {key: cost for key, cost in self.fit.kernels.items() if key not in gone}
        return kept | (kernel_costs(rest) if rest else {})

    def _cluster_without(self, point: Point) -> Cluster:
        if id(point) not in self.inside:
            return self.fit.cluster
        rest = np.delete(self.equations, self.inside[id(point)], axis=1)
        return self.cluster.with_inside(link(rest, self.cluster))


def _kernel_and_pass(point: Point) -> tuple[str, str]:
    return point.kernel, point.workload.pass_


def _without(point: Point, points: Sequence[Point]) -> list[Point]:
    return [other for other in points if other is not point]


def _grouped(named: Iterable[tuple[_Group, Point]]) -> dict[_Group, list[Point]]:
    groups: dict[_Group, list[Point]] = {}
    for name, point in named:
        groups.setdefault(name, []).append(point)
    return groups
