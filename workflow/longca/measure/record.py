"""Record: what came of a case. A status always, and numbers only where the status is ok."""

import json
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from longca.cases import Case
from longca.errors import LongcaError

Status = Literal["ok", "unsupported", "missing", "out_of_memory", "wrong", "fallback", "crashed", "timeout"]
STATUSES: tuple[Status, ...] = Status.__args__  # type: ignore[attr-defined]

# What stands on a record only where its status is ok.
MEASURED = ("latency_ms", "samples_ms", "tflops", "peak_memory_bytes", "prepare_ms", "compile_ms")

_Milliseconds = Annotated[float, Field(gt=0)]
_Finite = Annotated[float, Field(allow_inf_nan=False)]


class Latency(BaseModel):
    """Quantiles of the samples, in milliseconds."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    p20: _Milliseconds
    p50: _Milliseconds
    p80: _Milliseconds


class Record(BaseModel):
    """One line of a record file. Columns and units: results/README.md.

    FLOPs are counted from `area`, the mean over heads of the cells really kept; `tflops` is None unless ok.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    kernel: str
    family: Literal["dense", "sparse", "context_parallel"]
    dataset: str
    dataset_resolved: str | None
    pattern: str
    seqlen: Annotated[int, Field(ge=1)]
    sample: Annotated[int, Field(ge=0)]
    q_heads: Annotated[int, Field(ge=1)]
    kv_heads: Annotated[int, Field(ge=1)]
    head_dim: Annotated[int, Field(ge=1)]
    dtype: str
    pass_: Annotated[Literal["forward", "backward"], Field(alias="pass")]
    block: int | None = None
    density_nominal: float | None = None
    status: Status
    reason: str | None = None
    latency_ms: Latency | None = None
    samples_ms: list[_Milliseconds] | None = None
    tflops: Annotated[float, Field(gt=0)] | None = None
    area: Annotated[float, Field(ge=0)]
    density: Annotated[float, Field(ge=0, le=1)]
    peak_memory_bytes: Annotated[int, Field(ge=0)] | None = None
    prepare_ms: Annotated[float, Field(ge=0)] | None = None
    compile_ms: Annotated[float, Field(ge=0)] | None = None
    relative_error: dict[Literal["out", "dq", "dk", "dv"], _Finite | None] | None = None
    backend: str | None = None
    flags: list[str] = Field(default_factory=list)
    mask_digest: str
    fingerprint: str
    environment: dict[str, Any]
    measured_at: str

    @model_validator(mode="after")
    def _numbers_only_where_ok(self) -> "Record":
        present = [name for name in MEASURED if getattr(self, name) is not None]
        if self.status == "ok":
            absent = [name for name in MEASURED if name not in present]
            if absent or not self.relative_error:
                raise ValueError(f"status ok lacks {', '.join(absent) or 'relative_error'}")
        else:
            if present:
                raise ValueError(
                    f"status {self.status} has {', '.join(present)}; right: numbers only where ok"
                )
            if not self.reason:
                raise ValueError(f"status {self.status} lacks its reason")
            if self.relative_error and self.status != "wrong":
                raise ValueError(f"status {self.status} has relative_error; right: only ok and wrong have it")
        return self

    @property
    def case(self) -> Case:
        """The case this record is of."""
        return Case(**{name: getattr(self, name) for name in Case.__dataclass_fields__})

    def to_line(self) -> str:
        """The record as one line of JSON, in the order of its columns; block-sparse's only on block-sparse records."""
        columns = self.model_dump(by_alias=True)
        if self.family != "sparse":
            del columns["block"], columns["density_nominal"]
        return json.dumps(columns, allow_nan=False)


def parse_record(line: str, source: str) -> Record:
    """The record in one line of JSON. Raises LongcaError naming `source` and what is wrong."""
    try:
        return Record.model_validate_json(line)
    except ValidationError as error:
        mistake = error.errors()[0]
        key = ".".join(map(str, mistake["loc"])) or "record"
        raise LongcaError(f"{source}: {key}: {mistake['msg']}") from error


def read_records(path: Path) -> list[Record]:
    """The records of a file, one a line. Raises LongcaError naming file, line and key."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise LongcaError(f"{path}: cannot be read: {error}") from error
    return [parse_record(line, f"{path}:{number}") for number, line in enumerate(lines, 1)]
