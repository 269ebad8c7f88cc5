"""Reading Parquet files as a stream of row batches, only the columns that are counted."""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from longca.data.batches import BATCH_BYTES, RowBatch, check_size
from longca.data.layouts import Layout, table_columns
from longca.errors import LongcaError

# Rows decoded at once, at most.
FIXED_WIDTH_ROWS = 16384
VARIABLE_WIDTH_ROWS = 64
TOKEN_ID_BYTES = 4


def row_batches(file: Path, layout: Layout) -> Iterator[RowBatch]:
    """The rows of `file`: the first column of `layout` that it has, and the subset name.

    Text stays bytes (UTF-8 is checked a row at a time by who counts it); a list of token ids is a range as
    long. Raises LongcaError for a file that is damaged or has none of the columns.
    """
    try:
        # No pre-buffering: it would hold whole column chunks, and a row group can be larger than the memory
        # we allow.
        table = pq.ParquetFile(file, buffer_size=BATCH_BYTES, pre_buffer=False)
        names = table_columns(str(file), table.schema_arrow.names, layout)
        slices = table.iter_batches(
            _rows_at_once(table, names[0]),
            columns=[names[0], *(".".join(layout.subset or ()) for _ in names[1:])],
            use_threads=False,
        )
        stored_per_row = file.stat().st_size / max(1, table.metadata.num_rows)
        first, rows, size = 1, 0, 0
        columns: dict[str, list[Any]] = defaultdict(list)
        for piece in slices:
            for name, column in zip(piece.schema.names, piece.columns, strict=True):
                values = _values(column)
                for row, value in enumerate(values, first + rows):
                    if isinstance(value, bytes):
                        check_size(len(value), f"{file}: row {row}")
                columns[name] += values
            rows += piece.num_rows
            size += piece.nbytes
            if size >= BATCH_BYTES:
                yield RowBatch(str(file), first, columns, size, round(stored_per_row * rows))
                first, rows, size = first + rows, 0, 0
                columns = defaultdict(list)
        if rows:
            yield RowBatch(str(file), first, columns, size, round(stored_per_row * rows))
    except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
        raise LongcaError(f"{file}: cannot be read as Parquet: {' '.join(str(error).split())}") from None


def _rows_at_once(table: pq.ParquetFile, column: str) -> int:
    """Rows of `column` that decode to about BATCH_BYTES.

    What the file states is a lower bound only: a page may hold one long text and a thousand references to it.
    So texts and lists are decoded a few at a time, and gathered up to a batch.
    """
    if pa.types.is_primitive(table.schema_arrow.field(column).type):
        return FIXED_WIDTH_ROWS
    widest = 1.0
    for group in map(table.metadata.row_group, range(table.num_row_groups)):
        for chunk in map(group.column, range(group.num_columns)):
            if chunk.path_in_schema.split(".")[0] == column:
                size = max(chunk.total_uncompressed_size, chunk.num_values * TOKEN_ID_BYTES)
                widest = max(widest, size / max(1, group.num_rows))
    return max(1, min(VARIABLE_WIDTH_ROWS, int(BATCH_BYTES / widest)))


def _values(column: pa.Array) -> list[Any]:
    """Text as bytes, lists of whole numbers as ranges of their lengths, anything else as it is."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_string(column.type):
        column = column.cast(pa.binary())
    if pa.types.is_large_string(column.type):
        column = column.cast(pa.large_binary())
    lists = pa.types.is_list(column.type) or pa.types.is_large_list(column.type)
    if lists and pa.types.is_integer(column.type.value_type):
        sizes = pc.list_value_length(column).to_pylist()
        return [None if size is None else range(size) for size in sizes]
    return column.to_pylist()
