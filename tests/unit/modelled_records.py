"""Columns of records over ranks as the cost model would have them: what fits and projections are tested with."""

from typing import Any

from longca.parallel.cost_model import Cost

H200 = {"device": "NVIDIA H200", "compute_capability": "9.0"}


def rank_columns(cost: Cost, friction: float = 1.0) -> dict[str, Any]:
    """What a machine that takes `friction` times a modelled pass would measure of it, on an H200."""
    whole_ms = cost.total_s * friction * 1e3
    return {
        "milliseconds": whole_ms,
        "rank_latency_ms": {"min": whole_ms, "mean": whole_ms, "max": whole_ms},
        "communication_bytes": 1,
        "communication_ms": cost.communication_s * 1e3,
        "computation_ms": cost.computation_s * 1e3,
        "imbalance": 1.0,
        "environment": H200,
    }
