"""From a worker's outcome to the record of a case."""

from datetime import UTC, datetime
from typing import Any

from longca.cases import Case
from longca.data.packing import resolve_dataset
from longca.masks.blocks import BlockMap
from longca.masks.mask import Mask
from longca.masks.patterns import PATTERNS
from longca.measure.derived import quantiles, throughput_tflops
from longca.measure.protocol import Outcome
from longca.measure.record import Record
from longca.measure.record_columns import Latency


def to_record(
    case: Case, mask: Mask | BlockMap, outcome: Outcome, fingerprint: str, environment: dict[str, Any]
) -> Record:
    """The record of a case: quantiles and throughput from the samples, and numbers only where the status is ok."""
    columns: dict[str, Any] = case.columns() | {
        "dataset_resolved": resolved_dataset(case),
        "status": outcome.status,
        "reason": outcome.reason,
        "area": mask.area,
        "density": mask.density,
        "relative_error": outcome.relative_error,
        "backend": outcome.backend,
        "flags": outcome.flags,
        "mask_digest": mask.digest,
        "fingerprint": fingerprint,
        "environment": environment | ({"state": outcome.state} if outcome.state else {}),
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    if outcome.status != "ok":
        return Record.model_validate(columns)
    assert outcome.samples_ms is not None
    p20, p50, p80 = quantiles(outcome.samples_ms)
    tflops = throughput_tflops(case, mask.area, p50)
    if outcome.peak_tflops is not None and tflops > outcome.peak_tflops:
        reason = (
            f"{tflops:.0f} TFLOP/s is over the chip's peak of {outcome.peak_tflops:.0f}: another mask ran"
        )
        return Record.model_validate(columns | {"status": "wrong", "reason": reason})
    return Record.model_validate(
        columns
        | {
            "latency_ms": Latency(p20=p20, p50=p50, p80=p80),
            "samples_ms": outcome.samples_ms,
            "tflops": float(f"{tflops:.6g}"),
            "peak_memory_bytes": outcome.peak_memory_bytes,
            "prepare_ms": outcome.prepare_ms,
            "compile_ms": outcome.compile_ms,
        }
        | outcome.parallel
    )


def resolved_dataset(case: Case) -> str | None:
    """The dataset the documents really come from; None where the pattern takes none."""
    takes_documents = case.pattern in PATTERNS and PATTERNS[case.pattern].takes_documents
    return resolve_dataset(case.dataset, case.seqlen) if takes_documents else None
