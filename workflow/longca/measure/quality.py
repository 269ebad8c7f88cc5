"""Doubts about samples: flags that stand on an ok record beside its number."""

import statistics
from typing import Any

from longca.measure import device as devices
from longca.measure.derived import quantiles

# A median that moves by more than this between the first and the last third of the samples is a drift.
_DRIFT = 0.05
# A spread from p20 to p80 over this share of the median says that the figure is not to be compared closely.
_NOISE = 0.10


def doubts(samples_ms: list[float], before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Names of the doubts: drift, noisy, throttled. before, after: the device's state around the samples."""
    third = max(1, len(samples_ms) // 3)
    first, last = statistics.median(samples_ms[:third]), statistics.median(samples_ms[-third:])
    p20, p50, p80 = quantiles(samples_ms)
    found = {
        "drift": abs(last / first - 1) > _DRIFT,
        "noisy": (p80 - p20) / p50 > _NOISE,
        "throttled": devices.throttled(before) or devices.throttled(after),
    }
    return [name for name, holds in found.items() if holds]
