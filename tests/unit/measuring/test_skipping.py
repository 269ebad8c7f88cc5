"""Time must fall with density: a kernel that computes every block is no block-sparse kernel, however right."""

from typing import Any

import pytest

from longca.cases import Case
from longca.measure.record import Record
from longca.measure.skipping import refuse_unskipped

SEQLEN = 16384


def a_record(density: float, milliseconds: float | None, **columns: Any) -> Record:
    case = Case(
        "sparse", "flex", "auto", "uniform_block", SEQLEN, 0, 64, 8, 128, "bfloat16", "forward", 64, density
    )
    area = columns.pop("area", density * SEQLEN**2)
    return Record.model_validate(
        case.columns()
        | {
            "dataset_resolved": None,
            "status": "ok",
            "latency_ms": {"p20": milliseconds, "p50": milliseconds, "p80": milliseconds},
            "samples_ms": [milliseconds] * 3,
            "tflops": 100.0,
            "area": area,
            "density": density,
            "peak_memory_bytes": 0,
            "prepare_ms": 1.0,
            "compile_ms": 1.0,
            "relative_error": {"out": 1e-3, "dq": None, "dk": None, "dv": None},
            "flags": ["noisy"],
            "mask_digest": "",
            "fingerprint": "",
            "environment": {},
            "measured_at": "",
        }
        | columns
    )


def statuses(*records: Record) -> list[str]:
    return [record.status for record in refuse_unskipped(records)]


def test_a_time_that_falls_with_density_stands() -> None:
    records = [a_record(0.1, 3.0), a_record(0.5, 9.5), a_record(1.0, 10.0)]
    assert refuse_unskipped(records) == records


def test_a_time_that_stands_still_is_a_fallback_wherever_something_was_left_out() -> None:
    found = refuse_unskipped([a_record(0.1, 9.8), a_record(0.5, 9.9), a_record(1.0, 10.0)])
    assert [record.status for record in found] == ["fallback", "fallback", "ok"]
    assert found[0].reason == "does not skip blocks: density 0.1 takes 0.98 of the time of density 1"
    assert found[0].latency_ms is None and found[0].relative_error is None and found[0].flags == []
    assert found[0].case.density_nominal == 0.1 and found[2].tflops == 100.0


@pytest.mark.parametrize("milliseconds", [9.0, 8.9])
def test_the_bound_itself_is_allowed(milliseconds: float) -> None:
    assert statuses(a_record(0.1, milliseconds), a_record(1.0, 10.0)) == ["ok", "ok"]
    assert statuses(a_record(0.1, 9.01), a_record(1.0, 10.0)) == ["fallback", "ok"]


def test_maps_that_differ_too_little_tell_nothing() -> None:
    assert statuses(a_record(0.3, 10.0), a_record(1.0, 10.0)) == ["ok", "ok"]
    assert statuses(a_record(0.25, 10.0), a_record(1.0, 10.0)) == ["fallback", "ok"]


def test_cases_that_are_mostly_launching_tell_nothing() -> None:
    assert statuses(a_record(0.1, 0.02, area=1e5), a_record(1.0, 0.02, area=1e6)) == ["ok", "ok"]


def test_each_pass_length_and_block_is_compared_with_itself_alone() -> None:
    slow = a_record(0.1, 10.0, block=128)
    others = [a_record(1.0, 10.0), a_record(1.0, 10.0, block=128, **{"pass": "backward"})]
    assert statuses(slow, *others) == ["ok", "ok", "ok"]


def test_what_is_not_ok_is_left_as_it_is_and_compares_nothing() -> None:
    nothing = dict.fromkeys(
        (
            "latency_ms",
            "samples_ms",
            "tflops",
            "peak_memory_bytes",
            "prepare_ms",
            "compile_ms",
            "relative_error",
        )
    )
    lost = a_record(1.0, 1.0, **nothing, status="out_of_memory", reason="no room")
    assert statuses(a_record(0.1, 10.0), lost) == ["ok", "out_of_memory"]
