"""How near is too near to call: modelled times that differ by less than the model's own error are level."""

from collections.abc import Mapping, Sequence
from statistics import median

from longca.reporting.scale.fit import Fit
from longca.reporting.scale.left_out import checked
from longca.reporting.scale.points import Point


def median_error(ratios: Sequence[float]) -> float | None:
    """By how much modelled over measured is off 1 at the median; None of none."""
    return median(abs(ratio - 1) for ratio in ratios) if ratios else None


def error_of(model: Fit, points: Sequence[Point]) -> float | None:
    """The median error of the points that were left out of the fit, as the table `cost_model` has it."""
    return median_error([cost.total_s / point.whole_s for point, cost in checked(points, model.cluster)])


def level_with_best(times: Mapping[str, float], error: float | None) -> list[str]:
    """The names whose time is the least, or longer by a share of no more than `error`; in the order of `times`."""
    longest = min(times.values()) * (1 + (error or 0.0))
    return [name for name, time in times.items() if time <= longest]


def level_words(error: float | None) -> str:
    """Why none of several is ahead."""
    return "as long" if not error else f"nearer than the model's error of {error:.0%}"


def listed(names: Sequence[str]) -> str:
    """`a, b and c`; nothing of none."""
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))
