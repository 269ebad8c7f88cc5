"""The plan of a study: what is counted, and what its hours are made of."""

import pytest

from longca.cases import Case, study_series
from longca.study.loading import check_study
from longca.study.model import Protocol
from longca.study.plan import Assumptions, plan_rows, predict_seconds

ASSUMED = Assumptions(tflops=1.0, case_s=2.0, series_s=30.0)
TEN_CALLS = Protocol(warmups=3, repetitions=7)
CASE = Case("dense", "sdpa", "auto", "causal", 1024, 0, 8, 2, 128, "float32", "forward")
# 4 * 1024 * 1024 cells * 8 query heads * 128 at 1 TFLOP/s
CALL_S = 4 * 1024 * 1024 * 8 * 128 / 1e12


def test_a_case_at_the_assumed_rate() -> None:
    assert predict_seconds(CASE, TEN_CALLS, ASSUMED, None) == pytest.approx(2.0 + 13 * CALL_S)


def test_a_backward_is_two_and_a_half_forwards() -> None:
    backward = Case(**{**vars(CASE), "pass_": "backward"})
    assert predict_seconds(backward, TEN_CALLS, ASSUMED, None) == pytest.approx(2.0 + 13 * 2.5 * CALL_S)


def test_a_block_map_counts_the_share_it_keeps() -> None:
    sparse = Case(**{**vars(CASE), "family": "sparse", "block": 64, "density_nominal": 0.25})
    assert predict_seconds(sparse, TEN_CALLS, ASSUMED, None) == pytest.approx(2.0 + 13 * 0.25 * CALL_S)


def test_a_measured_case_counts_its_own_latency() -> None:
    assert predict_seconds(CASE, TEN_CALLS, ASSUMED, latency_ms=50.0) == pytest.approx(2.0 + 13 * 0.05)


def test_a_sampling_time_ends_a_long_call_after_five() -> None:
    protocol = Protocol(warmups=3, repetitions=30, sampling_time="1s")
    for latency_ms, samples in ((10.0, 30), (50.0, 20), (2000.0, 5)):
        seconds = predict_seconds(CASE, protocol, ASSUMED, latency_ms)
        assert seconds == pytest.approx(2.0 + (samples + 3 + 3) * latency_ms / 1e3)


def test_rows_count_series_cases_refusals_and_what_was_measured() -> None:
    grid = {"kernels": ["sdpa", "naive"], "patterns": ["full", "causal"], "seqlens": [1024], "heads": ["8-2"]}
    study = check_study({"study": "tiny", "dense": {**grid, "dtype": "float32"}}, "tiny.yaml")

    def refuses_naive_backward(case: Case) -> bool:
        return case.kernel == "naive" and case.pass_ == "backward"

    sdpa, naive = plan_rows(study_series(study), TEN_CALLS, ASSUMED, refuses_naive_backward, {CASE: 50.0})
    assert (sdpa.family, sdpa.kernel, naive.kernel) == ("dense", "sdpa", "naive")
    assert (sdpa.series, sdpa.cases, sdpa.refused, sdpa.measured) == (2, 4, 0, 1)
    assert (naive.series, naive.cases, naive.refused, naive.measured) == (2, 4, 2, 0)
    assert naive.longest_minutes * 60 == pytest.approx(30 + 2.0 + 13 * CALL_S)
    assert sdpa.longest_minutes * 60 == pytest.approx(30 + 2 * 2.0 + 13 * (0.05 + 2.5 * CALL_S))
    assert naive.hours * 3600 == pytest.approx(2 * 30 + 2 * (2.0 + 13 * CALL_S))
    assert sdpa.hours * 3600 == pytest.approx(2 * 30 + 4 * 2.0 + 13 * (0.05 + CALL_S + 2 * 2.5 * CALL_S))
