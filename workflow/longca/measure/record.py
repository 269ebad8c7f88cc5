"""Record: what came of a case. A status always, and numbers only where the status is ok."""

import json
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from longca.arrangement import Arrangement
from longca.cases import Case
from longca.errors import LongcaError
from longca.measure.environments import resolve
from longca.measure.record_checks import refuse_contradiction
from longca.measure.record_columns import (
    STRICT,
    Count,
    Latency,
    Milliseconds,
    NotNegative,
    RankLatency,
    TopologyColumns,
    Whole,
)
from longca.parallel.topology import Topology

Status = Literal["ok", "unsupported", "missing", "out_of_memory", "wrong", "fallback", "crashed", "timeout"]
STATUSES: tuple[Status, ...] = Status.__args__  # type: ignore[attr-defined]

# What stands on a record only where its status is ok.
MEASURED = ("latency_ms", "samples_ms", "tflops", "peak_memory_bytes", "prepare_ms", "compile_ms")
MEASURED_ON_RANKS = (
    "rank_latency_ms",
    "communication_bytes",
    "communication_ms",
    "computation_ms",
    "imbalance",
)
# Columns of one family only.
_OWN_COLUMNS = {
    "sparse": ("block", "density_nominal"),
    "context_parallel": (
        "mechanism",
        "world_size",
        "topology",
        "sharding",
        "head_chunks",
        *MEASURED_ON_RANKS,
    ),
}


class Record(BaseModel):
    """One line of a record file. Columns and units: results/README.md.

    FLOPs are counted from `area`, the mean over heads of the cells really kept; `tflops` is None unless ok.
    """

    model_config = STRICT | ConfigDict(populate_by_name=True)

    kernel: str
    family: Literal["dense", "sparse", "context_parallel"]
    dataset: str
    dataset_resolved: str | None
    pattern: str
    seqlen: Count
    sample: Whole
    q_heads: Count
    kv_heads: Count
    head_dim: Count
    dtype: str
    pass_: Annotated[Literal["forward", "backward"], Field(alias="pass")]
    block: int | None = None
    density_nominal: float | None = None
    mechanism: str | None = None
    world_size: Count | None = None
    topology: TopologyColumns | None = None
    sharding: str | None = None
    head_chunks: Count | None = None
    status: Status
    reason: str | None = None
    latency_ms: Latency | None = None
    samples_ms: Annotated[list[Milliseconds], Field(min_length=1)] | None = None
    rank_latency_ms: RankLatency | None = None
    communication_bytes: Whole | None = None
    communication_ms: NotNegative | None = None
    computation_ms: NotNegative | None = None
    imbalance: Annotated[float, Field(ge=1)] | None = None
    tflops: Annotated[float, Field(gt=0)] | None = None
    area: NotNegative
    density: Annotated[float, Field(ge=0, le=1)]
    peak_memory_bytes: Whole | None = None
    prepare_ms: NotNegative | None = None
    compile_ms: NotNegative | None = None
    relative_error: dict[Literal["out", "dq", "dk", "dv"], NotNegative | None] | None = None
    backend: str | None = None
    flags: list[str] = Field(default_factory=list)
    mask_digest: str
    fingerprint: str
    environment: dict[str, Any]
    measured_at: str

    @model_validator(mode="after")
    def _numbers_only_where_ok(self) -> "Record":
        measured = MEASURED + (MEASURED_ON_RANKS if self.family == "context_parallel" else ())
        present = [name for name in measured if getattr(self, name) is not None]
        if self.status == "ok":
            absent = [name for name in measured if name not in present]
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
    def arrangement(self) -> Arrangement | None:
        """How it was spread over ranks, where it was."""
        if self.mechanism is None or self.topology is None or self.sharding is None:
            return None
        topology = Topology(**self.topology.model_dump())
        return Arrangement(self.mechanism, topology, self.sharding, self.head_chunks or 1)

    @property
    def case(self) -> Case:
        """The case this record is of."""
        return Case(**{name: getattr(self, name) for name in Case.__dataclass_fields__})

    def to_line(self) -> str:
        """The record as one line of JSON, in the order of its columns; those of one family only on its records."""
        columns = self.model_dump(by_alias=True)
        for family, own in _OWN_COLUMNS.items():
            for name in own if family != self.family else ():
                del columns[name]
        return json.dumps(columns, allow_nan=False)


def parse_record(line: str, source: str) -> Record:
    """The record in one line of JSON. Raises LongcaError naming `source` and what is wrong, by itself or together."""
    try:
        record = Record.model_validate_json(line)
        refuse_contradiction(record)
    except ValidationError as error:
        raise LongcaError(f"{source}: {_describe(error)}") from error
    except ValueError as error:
        raise LongcaError(f"{source}: {error}") from error
    return record


def _describe(error: ValidationError) -> str:
    """Key, value and what would be right, of the first mistake."""
    mistake = error.errors()[0]
    key = ".".join(map(str, mistake["loc"])) or "record"
    value = mistake["input"]
    found = f", found {value!r:.60}" if isinstance(value, (str, int, float)) and mistake["loc"] else ""
    return f"{key}: {mistake['msg']}{found}"


def read_records(path: Path) -> list[Record]:
    """The records of a file, one a line. Raises LongcaError naming file, line and key."""
    return [record for _, record in read_keyed_records(path)]


def read_keyed_records(path: Path) -> list[tuple[str | None, Record]]:
    """The records of a file, each with its journal's key where the line carries one: those of a frozen study do."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise LongcaError(f"{path}: cannot be read: {error}") from error
    return [_parse_line(line, path, f"{path}:{number}") for number, line in enumerate(lines, 1)]


def _parse_line(line: str, path: Path, source: str) -> tuple[str | None, Record]:
    if '"digest"' not in line:
        return None, parse_record(line, source)
    try:
        columns = json.loads(line)
        columns["environment"] = resolve(columns["environment"], path, source)
        key = columns.pop("key", None)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise LongcaError(f"{source}: is no record ({error})") from error
    return key, parse_record(json.dumps(columns), source)
