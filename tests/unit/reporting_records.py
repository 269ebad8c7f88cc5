"""Synthetic records for the tests of the reporting stage: a study's record files, written case by case."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from longca.cases import Case, study_series
from longca.measure.derived import quantiles, throughput_tflops
from longca.measure.record import Record
from longca.reporting.names import results_of
from longca.study.loading import check_study
from longca.study.model import Study

Change = Callable[[Case], dict[str, Any] | None]


def dense_study(**dense: Any) -> Study:
    """A study of two kernels, two patterns and one length, changed by `dense`."""
    grid = {
        "kernels": ["naive", "sdpa"],
        "patterns": ["full", "causal"],
        "seqlens": [1024],
        "heads": ["4-2"],
        "head_dim": 64,
        "dtype": "float32",
        "passes": ["forward"],
    }
    return check_study({"study": "tiny", "measure": {"device": "cpu"}, "dense": grid | dense}, "test")


def sparse_study(**sparse: Any) -> Study:
    """A block-sparse study of two kernels at two densities, changed by `sparse`."""
    grid = {
        "kernels": ["flex", "segments"],
        "patterns": ["uniform_block"],
        "seqlens": [2048],
        "heads": ["4-2"],
        "blocks": {"uniform_block": [64]},
        "densities": [0.25, 0.5],
        "passes": ["forward"],
    }
    return check_study({"study": "tiny_sparse", "sparse": grid | sparse}, "test")


def record(case: Case, **changes: Any) -> Record:
    """An ok record of a case: 1 ms, a quarter of the cells kept, each column as `changes` has it.

    `milliseconds` sets the quantiles of latency; a `status` other than ok takes the numbers away. What follows from
    other columns follows: latency from samples, density from area or area from density, throughput from both.
    """
    milliseconds = changes.pop("milliseconds", 1.0)
    samples = changes.get("samples_ms") or [milliseconds * share for share in (0.9, 0.9, 1.0, 1.1, 1.1)]
    p20, p50, p80 = quantiles(samples)
    area = changes.get("area", changes.get("density", 0.25) * case.seqlen**2)
    columns = case.columns() | {
        "dataset_resolved": "pile",
        "status": "ok",
        "reason": None,
        "latency_ms": {"p20": p20, "p50": p50, "p80": p80},
        "samples_ms": samples,
        "tflops": throughput_tflops(case, area, p50),
        "area": area,
        "density": area / case.seqlen**2,
        "peak_memory_bytes": 2**20,
        "prepare_ms": 2.0,
        "compile_ms": 0.0,
        "relative_error": {"out": 1e-7, "dq": None, "dk": None, "dv": None},
        "backend": f"{case.kernel}, own path",
        "flags": [],
        "mask_digest": f"digest of {case.mask_file}",
        "fingerprint": f"fingerprint of {case.kernel}",
        "environment": {
            "device": "a CPU, 2 threads",
            "torch": "2.13.0",
            "state": {"before": {"load_1m": 0.5}},
        },
        "measured_at": "2026-01-01T00:00:00Z",
    }
    if changes.get("status", "ok") != "ok":
        nothing = (
            "latency_ms",
            "samples_ms",
            "tflops",
            "peak_memory_bytes",
            "prepare_ms",
            "compile_ms",
            "relative_error",
        )
        columns |= {name: None for name in nothing} | {"reason": "its reason"}
    return Record.model_validate(columns | changes)


def faster(columns: dict[str, Any], times: float) -> dict[str, Any]:
    """Columns of a record as if it had been measured so many times as fast."""
    return columns | {
        "latency_ms": {name: value / times for name, value in columns["latency_ms"].items()},
        "samples_ms": [sample / times for sample in columns["samples_ms"]],
        "tflops": columns["tflops"] * times,
    }


def write_records(study: Study, change: Change = lambda case: {}) -> None:
    """Write every record file of a study; `change` gives what a case's record changes, None leaves it out."""
    for series in study_series(study):
        changed = [(case, change(case)) for case in series.cases]
        lines = [record(case, **columns).to_line() for case, columns in changed if columns is not None]
        if lines:
            record_file(study, series.name).parent.mkdir(parents=True, exist_ok=True)
            record_file(study, series.name).write_text("\n".join(lines) + "\n", encoding="utf-8")


def record_file(study: Study, series: Path | str) -> Path:
    """Where a series' records lie."""
    return results_of(study) / "records" / f"{series}.jsonl"


def by_kernel(**kernels: dict[str, Any] | None) -> Change:
    """Changes by the name of the kernel."""
    return lambda case: kernels.get(case.kernel, {})
