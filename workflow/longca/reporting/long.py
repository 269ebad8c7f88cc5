"""The long form of a table: one row a case, every status, nested columns flattened; as Parquet and CSV."""

import csv
import io
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from longca.errors import LongcaError
from longca.reporting.collect import CaseRecord
from longca.reporting.words import NOT_MEASURED

Row = dict[str, Any]

_TEXT, _WHOLE, _REAL = pa.string(), pa.int64(), pa.float64()
COLUMNS: dict[str, pa.DataType] = {
    **dict.fromkeys(("kernel", "family", "dataset", "dataset_resolved", "pattern"), _TEXT),
    **dict.fromkeys(("seqlen", "sample", "q_heads", "kv_heads", "head_dim"), _WHOLE),
    **dict.fromkeys(("dtype", "pass"), _TEXT),
    "block": _WHOLE,
    "density_nominal": _REAL,
    "mechanism": _TEXT,
    **dict.fromkeys(("world_size", "topology_ulysses", "topology_ring", "topology_windows"), _WHOLE),
    **dict.fromkeys(("topology_placement", "sharding"), _TEXT),
    "head_chunks": _WHOLE,
    **dict.fromkeys(("status", "reason"), _TEXT),
    **dict.fromkeys(("latency_ms_p20", "latency_ms_p50", "latency_ms_p80"), _REAL),
    "samples_ms": pa.list_(_REAL),
    **dict.fromkeys((f"rank_latency_ms_{which}" for which in ("min", "mean", "max")), _REAL),
    "communication_bytes": _WHOLE,
    **dict.fromkeys(("communication_ms", "computation_ms", "imbalance"), _REAL),
    **dict.fromkeys(("tflops", "area", "density"), _REAL),
    "peak_memory_bytes": _WHOLE,
    **dict.fromkeys(("prepare_ms", "compile_ms"), _REAL),
    **dict.fromkeys((f"relative_error_{tensor}" for tensor in ("out", "dq", "dk", "dv")), _REAL),
    "backend": _TEXT,
    "flags": pa.list_(_TEXT),
    **dict.fromkeys(("mask_digest", "fingerprint", "measured_at"), _TEXT),
}
_ON_RANKS = ("mechanism", "world_size", "topology_", "sharding", "head_chunks", "rank_latency_ms_")
# Columns of one family only, by the beginning of their names.
OF_ONE_FAMILY = {
    "sparse": ("block", "density_nominal"),
    "context_parallel": (*_ON_RANKS, "communication_", "computation_ms", "imbalance"),
}


def long_table(collected: Iterable[CaseRecord], family: str) -> pa.Table:
    """One row a case in the record's columns; where a case has no record the status says `not measured`."""
    rows = [long_row(item) for item in collected]
    others = tuple(name for other, names in OF_ONE_FAMILY.items() if other != family for name in names)
    return table_of(rows, {name: kind for name, kind in COLUMNS.items() if not name.startswith(others)})


def table_of(rows: Sequence[Row], columns: dict[str, pa.DataType]) -> pa.Table:
    """An Arrow table of `rows` in `columns`, followed by whatever environment columns the rows have."""
    arrays = {name: pa.array([row.get(name) for row in rows], kind) for name, kind in columns.items()}
    extra = dict.fromkeys(name for row in rows for name in row if name.startswith("environment_"))
    for name in extra:
        arrays[name] = _inferred([row.get(name) for row in rows])
    return pa.table(arrays)


def parquet_bytes(table: pa.Table) -> bytes:
    """The table as a Parquet file."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    return sink.getvalue().to_pybytes()


def csv_text(table: pa.Table) -> str:
    """The table as CSV: lists as JSON arrays, null as an empty field."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.column_names)
    lists = [pa.types.is_list(field.type) for field in table.schema]
    for values in zip(*(column.to_pylist() for column in table.columns), strict=True):
        writer.writerow(
            [
                json.dumps(v) if is_list and v is not None else v
                for v, is_list in zip(values, lists, strict=True)
            ]
        )
    return text.getvalue()


def read_rows(file: Path) -> list[Row]:
    """The rows of a table's Parquet file. Raises LongcaError where it is not there or no Parquet."""
    if not file.exists():
        raise LongcaError(f"{file}: is not there; right: make it with `longca tables {file.stem}`")
    try:
        # One file, read as such: a path with `key=value` in it is no partition of a data set.
        return pq.ParquetFile(file).read().to_pylist()
    except pa.ArrowInvalid as error:
        raise LongcaError(f"{file}: is no Parquet table: {' '.join(str(error).split())}") from error


def long_row(item: CaseRecord) -> Row:
    """A case's record as one flat row; without a record its status is `not measured`."""
    case, file, record = item
    row: Row = {}
    if record is None:
        for name, value in case.columns().items():
            flatten(name, value, row)
        return row | {"status": NOT_MEASURED, "reason": f"no record yet in {file}"}
    for name, value in record.model_dump(by_alias=True).items():
        flatten(name, value, row)
    return row


def flatten(name: str, value: Any, row: Row) -> None:
    if isinstance(value, dict):
        for key, item in value.items():
            flatten(f"{name}_{key}", item, row)
    else:
        row[name] = value


def _inferred(values: list[Any]) -> pa.Array:
    """An array of the values' own type; as JSON texts where one column's values are of several types."""
    kinds = {type(value) for value in values if value is not None}
    if kinds == {int, float}:
        return pa.array(values, _REAL)
    if len(kinds) <= 1 and kinds <= {int, float, bool, str}:
        return pa.array(values, _TEXT if not kinds else None)
    return pa.array(
        [None if v is None else v if isinstance(v, str) else json.dumps(v) for v in values], _TEXT
    )
