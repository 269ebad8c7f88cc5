"""Records that contradict themselves are refused as they are read: in records, journals and controls, in one line."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from reporting_records import dense_study, faster, record

from longca.cases import Case, study_series
from longca.errors import LongcaError
from longca.measure.controls import read_controls
from longca.measure.derived import quantiles
from longca.measure.journal import Journal
from longca.measure.record import read_records
from longca.reporting.lines import read_lines
from longca.study.loading import check_study

Columns = dict[str, Any]
(CASE, *_) = study_series(dense_study())[0].cases
"""naive, full, 1024 tokens, 4 heads of 64, forward: 2**20 / 4 cells in 1 ms are 0.268 TFLOP/s."""


def columns(case: Case = CASE, **changes: Any) -> Columns:
    return dict(json.loads(record(case, **changes).to_line()))


def as_record(folder: Path, line: Columns) -> str:
    (folder / "x.jsonl").write_text(json.dumps(columns()) + "\n" + json.dumps(line) + "\n")
    return str(read_records(folder / "x.jsonl")[1])


def as_growing(folder: Path, line: Columns) -> str:
    (folder / "x.jsonl").write_text(json.dumps(columns()) + "\n" + json.dumps({"key": "b"} | line) + "\n")
    return str(read_lines(folder / "x.jsonl")[0])


def as_journal(folder: Path, line: Columns) -> str:
    lines = [{"key": key} | one for key, one in (("a", columns()), ("b", line))]
    (folder / "x.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    return str(Journal(folder / "x.jsonl").keys()["b"])


def as_control(folder: Path, line: Columns) -> str:
    lines = [{"control": "c", "card": "d"} | one for one in (columns(), line)]
    (folder / "controls.jsonl").write_text("".join(json.dumps(one) + "\n" for one in lines))
    return str(read_controls(folder)[1].record)


READERS = [as_record, as_growing, as_journal, as_control]
INFINITE = float("inf")
NOT_SO = "does not follow from the other columns; right:"
NOT_FINITE = "Input should be a finite number, found"


def latency(p20: float, p50: float, p80: float) -> Columns:
    return {"latency_ms": {"p20": p20, "p50": p50, "p80": p80}}


SPOILT: list[tuple[Columns, str]] = [
    (latency(0.9, 0.0001, 1.1), "latency_ms: p20 0.9, p50 0.0001, p80 1.1; right: p20 <= p50 <= p80"),
    (latency(0.9, 1.0, 1.2), f"latency_ms.p80: 1.2 {NOT_SO} 1.1"),
    (latency(0.9, 1.0, INFINITE), f"latency_ms.p80: {NOT_FINITE} inf"),
    ({"samples_ms": [1.0, 1.0, 1.0]}, f"latency_ms.p20: 0.9 {NOT_SO} 1"),
    ({"samples_ms": []}, "samples_ms: List should have at least 1 item"),
    ({"samples_ms": [0.9, 0.9, 1.0, 1.1, INFINITE]}, f"samples_ms.4: {NOT_FINITE} inf"),
    ({"tflops": 12345.6}, f"tflops: 12345.6 {NOT_SO} 0.268435"),
    ({"tflops": INFINITE}, f"tflops: {NOT_FINITE} inf"),
    ({"pass": "backward"}, f"tflops: 0.268435456 {NOT_SO} 0.671089"),
    ({"q_heads": 8}, f"tflops: 0.268435456 {NOT_SO} 0.536871"),
    ({"q_heads": 10**400}, "q_heads: Input should be"),
    ({"prepare_ms": float("nan")}, f"prepare_ms: {NOT_FINITE} nan"),
    ({"measured_at": "yesterday"}, "measured_at: 'yesterday' is no time; right: ISO 8601 with its offset"),
    ({"measured_at": "2026-01-01T00:00:00"}, "measured_at: '2026-01-01T00:00:00' is no time"),
    ({"density": 0.5}, f"density: 0.5 {NOT_SO} 0.25"),
    ({"area": 1000.0}, f"density: 0.25 {NOT_SO} 0.000953674"),
    ({"relative_error": {"out": -1.0}}, "relative_error.out: Input should be greater than or equal to 0"),
    (
        {"environment": {"device": "d", "state": {"power_w": [1.0, INFINITE]}}},
        "environment.state.power_w.1: inf; right: a finite number",
    ),
]


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize(("spoil", "said"), SPOILT)
def test_a_contradiction_is_named_with_its_line(
    read: Callable[[Path, Columns], str], spoil: Columns, said: str, tmp_path: Path
) -> None:
    assert read(tmp_path, columns())
    with pytest.raises(LongcaError) as refused:
        read(tmp_path, columns() | spoil)
    file = "controls.jsonl" if read is as_control else "x.jsonl"
    assert str(refused.value).startswith(f"{tmp_path}/{file}:2: {said}")
    assert "\n" not in str(refused.value) and len(str(refused.value)) < 400


@pytest.mark.parametrize("read", READERS)
def test_what_is_kept_with_fewer_digits_agrees(read: Callable[[Path, Columns], str], tmp_path: Path) -> None:
    # Each sample as far off as four digits can be, to either side; latency and throughput of six.
    for samples in ([1.00049, 1.00049, 1.00051, 1.00051], [0.1] * 7, [1.23456789], [3e-5, 1e5]):
        told = columns(samples_ms=samples)
        assert read(tmp_path, told)
        told["samples_ms"] = [float(f"{one:.4g}") for one in samples]
        told["latency_ms"] = {name: float(f"{one:.6g}") for name, one in told["latency_ms"].items()}
        told["tflops"] = float(f"{told['tflops']:.6g}")
        assert read(tmp_path, told)
    assert read(tmp_path, faster(columns(), 3.0))


def test_a_case_that_was_not_timed_is_checked_too(tmp_path: Path) -> None:
    lost = columns(status="out_of_memory")
    assert as_record(tmp_path, lost)
    with pytest.raises(LongcaError, match=r"x\.jsonl:2: measured_at: '' is no time"):
        as_record(tmp_path, lost | {"measured_at": ""})


def ranks(**changes: Any) -> Columns:
    grid = {
        "mechanisms": ["ulysses"], "kernels": ["segments"], "patterns": ["causal"], "world_sizes": [2],
        "tokens_per_rank": [512], "heads": ["2-2"], "head_dim": 16, "passes": ["backward"],
    }  # fmt: skip
    study = check_study({"study": "ranks", "context_parallel": grid}, "test")
    (case,) = study_series(study)[0].cases
    whole = {
        "rank_latency_ms": {"min": 0.9, "mean": 0.95, "max": 1.0}, "communication_bytes": 8, "communication_ms": 0.1,
        "computation_ms": 0.9, "imbalance": 1.0,
    }  # fmt: skip
    return columns(case, **whole) | changes


def test_of_ranks_a_share_of_the_flops_is_told(tmp_path: Path) -> None:
    assert as_record(tmp_path, ranks())
    assert ranks()["tflops"] == pytest.approx(2.5 * 4 * 2**20 / 4 * 2 * 16 / 2 / 1e9)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        ({"world_size": 4}, "world_size: 4; right: 2, as its topology has"),
        ({"mechanism": None}, "family context_parallel lacks mechanism"),
        (
            {"topology": {"ulysses": 2, "ring": 1, "windows": 3, "placement": "ring"}},
            "topology windows=3: must",
        ),
        (
            {"topology": {"ulysses": 1, "ring": 1, "windows": 1, "placement": "ring"}},
            "world_size: 2; right: 1",
        ),
        (
            {"rank_latency_ms": {"min": 0.9, "mean": 1.95, "max": 1.0}},
            "rank_latency_ms: min 0.9, mean 1.95, max 1.0; right: min <= mean <= max",
        ),
        ({"tflops": 1.0}, "tflops: 1.0 does not follow"),
    ],
)
def test_ranks_that_contradict_their_topology_are_named(spoil: Columns, said: str, tmp_path: Path) -> None:
    with pytest.raises(LongcaError) as refused:
        as_record(tmp_path, ranks(**spoil))
    assert str(refused.value).startswith(f"{tmp_path}/x.jsonl:2: {said}")


def test_quantiles_lie_between_neighbours() -> None:
    assert quantiles([4.0, 1.0, 3.0, 2.0]) == pytest.approx((1.6, 2.5, 3.4))
    assert quantiles([2.0]) == (2.0, 2.0, 2.0)
