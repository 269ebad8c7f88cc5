"""What follows from a case's samples, for who makes a record and who checks one: quantiles and throughput."""

import statistics
from collections.abc import Sequence

from longca.cases import Case
from longca.flops import attention_flops


def quantiles(samples_ms: Sequence[float]) -> tuple[float, float, float]:
    """p20, p50 and p80 of the samples, one at least, between neighbours by linear interpolation."""
    # A single one is its own quantile; the library wants two.
    several = samples_ms if len(samples_ms) > 1 else [*samples_ms, *samples_ms]
    tenths = statistics.quantiles(several, n=10, method="inclusive")
    return tenths[1], tenths[4], tenths[7]


def throughput_tflops(case: Case, area: float, latency_ms: float) -> float:
    """TFLOP/s of a case over `area` kept cells a head; over ranks, of a rank's share of the FLOPs."""
    flops = attention_flops(area, case.q_heads, case.head_dim, case.pass_) / case.world_size
    return flops / latency_ms / 1e9
