"""One question without a study: how fast, and right, are these kernels on this mask and shape here?"""

import tempfile
from dataclasses import dataclass
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from longca.cases import Case, study_series
from longca.masks.mask.drawing import check_dataset
from longca.masks.patterns import PATTERNS
from longca.measure.device_lock import timing_lock
from longca.measure.device_probe import has_gpu
from longca.measure.masks import case_mask
from longca.measure.record import Record
from longca.measure.session import KernelSession
from longca.study.loading import check_study
from longca.study.model import Study

# Shapes asked for where the user says none: the paper's on a GPU, a laptop's on a CPU.
_SHAPES = {
    "cuda": {"heads": "64-8", "head_dim": 128, "dtype": "bfloat16"},
    "cpu": {"heads": "4-2", "head_dim": 64, "dtype": "float32"},
}


@dataclass(frozen=True)
class Question:
    """What is asked, as typed. kernels empty: all; dataset and device None: auto; else None: the shape of _SHAPES."""

    kernels: list[str]
    pattern: str
    seqlen: str
    dataset: str | None
    heads: str | None
    head_dim: int | None
    dtype: str | None
    device: str | None


def ask(question: Question) -> Table:
    """A table of the kernels' records for both passes. Raises LongcaError for a name, unit or shape that is not one."""
    dataset, device = ("auto" if one is None else one for one in (question.dataset, question.device))
    if device == "auto":
        device = "cuda" if has_gpu() else "cpu"
    given = {name: getattr(question, name) for name in ("heads", "head_dim", "dtype")}
    shape = _SHAPES.get(device, _SHAPES["cpu"]) | {
        name: value for name, value in given.items() if value is not None
    }
    grid = shape | {
        "heads": [shape["heads"]],
        "kernels": question.kernels or "all",
        "patterns": [question.pattern],
        "seqlens": [question.seqlen],
        "datasets": [dataset],
    }
    study = check_study({"study": "question", "measure": {"device": device}, "dense": grid}, "command line")
    check_dataset(PATTERNS[question.pattern], dataset)
    (asked,) = study.dense
    with tempfile.TemporaryDirectory() as folder, timing_lock(device):
        records = [record for kernel in asked.kernels for record in _records(study, Path(folder), kernel)]
    return _table(records)


def _records(study: Study, results: Path, kernel: str) -> list[Record]:
    cases: list[Case] = [
        case for series in study_series(study) if series.kernel == kernel for case in series.cases
    ]
    with KernelSession("dense", kernel, study.measure) as session:
        return [_record(study, results, case, session) for case in cases]


def _record(study: Study, results: Path, case: Case, session: KernelSession) -> Record:
    mask = case_mask(study, results, case)
    return session.measure(case, mask, results / case.mask_file, study.measure.case_timeout)[0]


def _table(records: list[Record]) -> Table:
    first = records[0]
    shape = f"{first.q_heads}-{first.kv_heads} heads, head_dim {first.head_dim}, {first.dtype}"
    mask = f"{first.pattern}, {first.seqlen} tokens, density {first.density:.3g}"
    title = f"{mask}, {shape}\n{first.environment['device']}"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for column in ("kernel", "pass"):
        table.add_column(column, no_wrap=True)
    for column in ("TFLOP/s", "ms (p20-p80)", "peak MiB"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("status: backend or reason")
    for record in records:
        table.add_row(*(Text(cell) for cell in _cells(record)))
    return table


def _cells(record: Record) -> list[str]:
    flags = ", ".join(flag.replace("_", " ") for flag in record.flags)
    said = record.backend if record.status == "ok" else record.reason
    what = f"{record.status}: {said}" + (f" (flagged {flags})" if flags else "")
    if record.latency_ms is None or record.peak_memory_bytes is None or record.tflops is None:
        return [record.kernel, record.pass_, "", "", "", what]
    latency = f"{record.latency_ms.p50:.3g} ({record.latency_ms.p20:.3g}-{record.latency_ms.p80:.3g})"
    memory = f"{record.peak_memory_bytes / 2**20:.1f}"
    return [record.kernel, record.pass_, f"{record.tflops:.3g}", latency, memory, what]
