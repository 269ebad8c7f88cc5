"""What a study will take: cases counted, hours predicted.

The work is an upper bound (every cell of S x S, of block-sparse maps the share kept); speeds are assumed for
cases not measured before.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from longca.cases import Case, Series
from longca.flops import attention_flops
from longca.study.model import Protocol

OVERHEAD_CALLS = 3
"""Calls' worth of time besides the timed ones: checking a case against the oracle, measuring its memory."""
TURNS = 2
"""Over ranks a pass takes turns with its computation alone; its communication alone is not counted."""


@dataclass(frozen=True)
class Assumptions:
    """Speeds assumed where nothing was measured. Rates in TFLOP/s, times in seconds."""

    tflops: float
    case_s: float
    """preparing, compiling, starting the check of one case"""
    series_s: float
    """starting a job and the libraries in it"""


ASSUMED = {
    # As the default study on two cores of a server's processor; a GPU's are a guess on the safe side.
    "cpu": Assumptions(tflops=0.04, case_s=0.4, series_s=4.0),
    "cuda": Assumptions(tflops=200.0, case_s=3.0, series_s=15.0),
}


@dataclass(frozen=True)
class PlanRow:
    """One kernel's share of a study. refused: cases it does not support; they cost nothing."""

    family: str
    kernel: str
    series: int
    cases: int
    refused: int
    measured: int
    hours: float
    longest_minutes: float
    """of its series, each a job"""


def predict_seconds(case: Case, protocol: Protocol, assumed: Assumptions, latency_ms: float | None) -> float:
    """Seconds of one case: its warm-ups and samples at its measured latency, or at the assumed rate."""
    cells = case.seqlen**2 * (case.density_nominal or 1.0)
    flops = attention_flops(cells, case.q_heads, case.head_dim, case.pass_)
    share = flops / case.world_size
    call_s = share / (assumed.tflops * 1e12) if latency_ms is None else latency_ms / 1e3
    samples = protocol.samples_of(call_s)
    calls = samples + min(protocol.warmups, samples)
    turns = TURNS if case.arrangement else 1
    return assumed.case_s + (calls * turns + OVERHEAD_CALLS) * call_s


def plan_rows(
    series: Iterable[Series],
    protocol: Protocol,
    assumed: Assumptions,
    is_refused: Callable[[Case], bool],
    latencies_ms: Mapping[Case, float],
) -> Iterator[PlanRow]:
    """A row for each family and kernel, in the order of the series. latencies_ms: medians measured before."""
    by_kernel: dict[tuple[str, str], list[Series]] = {}
    for one in series:
        by_kernel.setdefault((one.family, one.kernel), []).append(one)
    for (family, kernel), own in by_kernel.items():
        cases = [case for one in own for case in one.cases]
        of_series = [[case for case in one.cases if not is_refused(case)] for one in own]
        run = [case for part in of_series for case in part]
        seconds = [
            assumed.series_s
            + sum(predict_seconds(case, protocol, assumed, latencies_ms.get(case)) for case in part)
            for part in of_series
        ]
        yield PlanRow(
            family=family,
            kernel=kernel,
            series=len(own),
            cases=len(cases),
            refused=len(cases) - len(run),
            measured=sum(case in latencies_ms for case in run),
            hours=sum(seconds) / 3600,
            longest_minutes=max(seconds) / 60,
        )
