"""From what each rank measured to what stands on a record: the slowest rank counts."""

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from longca.cases import Case
from longca.measure.cell import digits
from longca.parallel.volume import sent_bytes

if TYPE_CHECKING:
    from longca.measure.world.rank_cell import RankCell


@dataclass(frozen=True)
class RankFindings:
    """One rank's: milliseconds of each round of the pass, its computation and its communication; bytes; rows it holds.

    first_ms: of the first calls, compilation included.
    """

    whole_ms: list[float]
    computation_ms: list[float]
    communication_ms: list[float]
    sent_bytes: int
    rows: int
    peak_bytes: int
    prepare_ms: float
    first_ms: float


def combined(cell: "RankCell", ranks: list[RankFindings]) -> dict[str, Any]:
    """Measured columns of an outcome: a round's sample is the slowest rank's, and so are the times of the two halves.

    Peak memory and bytes are those of the rank with the most.
    """
    samples = slowest([rank.whole_ms for rank in ranks])
    medians = [statistics.median(rank.whole_ms) for rank in ranks]
    usual_ms = statistics.median(samples)
    first_ms = max(rank.first_ms for rank in ranks)
    alone = len(ranks) == 1
    return {
        "samples_ms": [digits(sample) for sample in samples],
        "peak_memory_bytes": max(rank.peak_bytes for rank in ranks),
        "prepare_ms": digits(max(rank.prepare_ms for rank in ranks)),
        "compile_ms": digits(max(0.0, first_ms - usual_ms)),
        "parallel": {
            "rank_latency_ms": {
                "min": digits(min(medians)),
                "mean": digits(statistics.fmean(medians)),
                "max": digits(max(medians)),
            },
            "communication_bytes": max(rank.sent_bytes for rank in ranks),
            "communication_ms": 0.0 if alone else _median_of_slowest([r.communication_ms for r in ranks]),
            "computation_ms": _median_of_slowest([rank.computation_ms for rank in ranks]),
            "imbalance": digits(cell.imbalance),
        },
    }


def miscounted(case: Case, cell: "RankCell", ranks: list[RankFindings]) -> str | None:
    """What is wrong with the bytes all ranks sent together, beside the mechanism's formula, which is linear in rows."""
    counted = sum(rank.sent_bytes for rank in ranks)
    rows = sum(rank.rows for rank in ranks)
    if cell.arrangement.mechanism == "ring_allgather":
        # Every shard is gathered with the rows of the longest.
        rows = len(ranks) * max(rank.rows for rank in ranks)
    shape = (case.q_heads, case.kv_heads, case.head_dim)
    element_bytes = cell.setting.dtype.itemsize
    right = sent_bytes(cell.arrangement.topology, rows, *shape, element_bytes, case.pass_)
    return None if counted == right else f"the ranks sent {counted} bytes, by the formula {right}"


def slowest(samples: list[list[float]]) -> list[float]:
    """Round by round, the time of the slowest rank."""
    return [max(of_round) for of_round in zip(*samples, strict=True)]


def _median_of_slowest(samples: list[list[float]]) -> float:
    return digits(statistics.median(slowest(samples)))
