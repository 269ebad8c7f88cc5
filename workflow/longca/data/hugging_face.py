"""Datasets of the Hugging Face hub as a stream of batches, through the optional `datasets` library."""

from collections.abc import Iterator
from typing import Any

from longca.data.batches import BATCH_BYTES, RowBatch
from longca.data.corpus import Corpus
from longca.data.layouts import table_columns
from longca.errors import LongcaError

# A batch of rows without text ends at this many.
BATCH_ROWS = 1000


def hub_batches(corpus: Corpus) -> Iterator[RowBatch]:
    """The rows of `corpus.hugging_face`, streamed: nothing is kept on disk.

    Raises LongcaError where `datasets` is not installed or fails (unknown name, no network).
    """
    try:
        import datasets
    except ImportError as error:
        raise LongcaError(
            f"hugging_face: {corpus.hugging_face!r} needs the datasets library: "
            f"make extra NAME=huggingface, or pip install datasets ({error})"
        ) from None
    name = f"hugging_face {corpus.hugging_face}"
    try:
        stream = datasets.load_dataset(corpus.hugging_face, corpus.config, split=corpus.split, streaming=True)
        if stream.column_names is not None:
            stream = stream.select_columns(table_columns(name, stream.column_names, corpus.keys))
        first, rows, size = 1, [], 0
        for row in stream:
            rows.append({key: _compact(value) for key, value in row.items()})
            size += sum(len(value) for value in row.values() if isinstance(value, str))
            if size >= BATCH_BYTES or len(rows) >= BATCH_ROWS:
                yield _batch(name, first, rows, size)
                first, rows, size = first + len(rows), [], 0
    except LongcaError:
        raise
    # The library and its transports raise many unrelated classes, all about the name or the network.
    except Exception as error:
        raise LongcaError(f"{name}: {type(error).__name__}: {' '.join(str(error).split())}") from None
    if rows:
        yield _batch(name, first, rows, size)


def _batch(name: str, first: int, rows: list[dict[str, Any]], size: int) -> RowBatch:
    """Rows as columns; a key that a row lacks is None there, as the library itself has it."""
    columns = {key: [row.get(key) for row in rows] for key in {key: None for row in rows for key in row}}
    return RowBatch(name, first, columns, size, stored_bytes=0)


def _compact(value: Any) -> Any:
    """A list of token ids as a range of its length: ids are many, and only counted."""
    if isinstance(value, list) and set(map(type, value)) <= {int}:
        return range(len(value))
    return value
