"""Does a record agree with itself? What follows from its other columns is computed again, within rounding."""

import math
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from longca.errors import LongcaError
from longca.measure.derived import quantiles, throughput_tflops

if TYPE_CHECKING:
    from longca.measure.record import Record

# Relative. Frozen samples keep four digits, so each is off by 5e-4 at most, and with them what lies between; latencies
# keep six, and a throughput has six of its own beside those of its median.
_OF_FOUR_DIGITS = 5.1e-4
_OF_SIX_DIGITS = 1.1e-5
# Of what is computed in doubles and kept as it is: density, and a quantile between equal samples.
_OF_DOUBLES = 1e-12


def refuse_contradiction(record: "Record") -> None:
    """Raise ValueError naming the first column, and its value, that does not follow from the others, and what does."""
    _check_time(record.measured_at)
    _check_finite(record.environment, "environment")
    _check_ranks(record)
    _check_close("density", record.density, record.area / record.seqlen**2, _OF_DOUBLES)
    latency = record.latency_ms
    if latency is None or record.samples_ms is None or record.tflops is None:
        return
    told = {"p20": latency.p20, "p50": latency.p50, "p80": latency.p80}
    _check_order("latency_ms", told, _OF_DOUBLES)
    for (name, value), right in zip(told.items(), quantiles(record.samples_ms), strict=True):
        _check_close(f"latency_ms.{name}", value, right, _OF_FOUR_DIGITS)
    _check_close(
        "tflops", record.tflops, throughput_tflops(record.case, record.area, latency.p50), _OF_SIX_DIGITS
    )


def _check_close(key: str, value: float, right: float, relative: float) -> None:
    if abs(value - right) > relative * abs(right):
        raise ValueError(f"{key}: {value} does not follow from the other columns; right: {right:.6g}")


def _check_order(key: str, told: dict[str, float], relative: float) -> None:
    values = list(told.values())
    if any(low > high * (1 + relative) for low, high in pairwise(values)):
        found = ", ".join(f"{name} {value}" for name, value in told.items())
        raise ValueError(f"{key}: {found}; right: {' <= '.join(told)}")


def _check_time(measured_at: str) -> None:
    try:
        whole = datetime.fromisoformat(measured_at).tzinfo is not None
    except ValueError:
        whole = False
    if not whole:
        raise ValueError(
            f"measured_at: {measured_at!r} is no time; right: ISO 8601 with its offset, as 2026-01-31T12:00:00+00:00"
        )


def _check_finite(value: Any, key: str) -> None:
    """Of the environment, whose names no schema knows."""
    if isinstance(value, dict):
        for name, part in value.items():
            _check_finite(part, f"{key}.{name}")
    elif isinstance(value, list):
        for number, part in enumerate(value):
            _check_finite(part, f"{key}.{number}")
    elif isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{key}: {value}; right: a finite number")


def _check_ranks(record: "Record") -> None:
    """Of context parallel: its arrangement is one, and of as many ranks as it says; its ranks' medians are in order."""
    if record.family != "context_parallel":
        return
    try:
        arrangement = record.arrangement
    except LongcaError as error:
        raise ValueError(str(error)) from error
    if arrangement is None:
        absent = [name for name in ("mechanism", "topology", "sharding") if getattr(record, name) is None]
        raise ValueError(f"family context_parallel lacks {', '.join(absent)}")
    if record.world_size != arrangement.world_size:
        raise ValueError(
            f"world_size: {record.world_size}; right: {arrangement.world_size}, as its topology has"
        )
    ranks = record.rank_latency_ms
    if ranks is not None:
        told = {"min": ranks.min, "mean": ranks.mean, "max": ranks.max}
        _check_order("rank_latency_ms", told, _OF_SIX_DIGITS)
