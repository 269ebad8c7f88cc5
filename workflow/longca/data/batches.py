"""Batches of records on their way from the reader to the processes that count them, as the file has them.

Decoding JSON and UTF-8 is left to the counting processes: it is their share of the work, and a record that cannot be
decoded spoils itself alone. Every batch has a `size` (bytes of memory, about) and `stored_bytes` (what it takes in its
file, for the progress).
"""

import codecs
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from longca.data.layouts import BadRecordError
from longca.errors import LongcaError

# Text a batch holds, in bytes, unless one document is larger: little enough for many processes.
BATCH_BYTES = 512 * 1024
# A document is parsed and counted whole, in about eight times its bytes: larger ones would pass 1 GiB of memory.
LARGEST_DOCUMENT_BYTES = 100 << 20

Record = dict[str, Any]


def check_size(size: int, place: str) -> None:
    """Raise LongcaError where the document at `place`, of `size` bytes, is larger than is counted at once."""
    if size > LARGEST_DOCUMENT_BYTES:
        largest = f"{LARGEST_DOCUMENT_BYTES >> 20} MiB"
        raise LongcaError(
            f"{place}: a document of over {largest}, more than is counted at once; right: split it"
        )


@dataclass(frozen=True)
class LineBatch:
    """Whole lines of a JSON-lines file, from line number `first` (1-based) on. Blank lines are no records."""

    file: str
    first: int
    data: bytes
    stored_bytes: int

    @property
    def size(self) -> int:
        """Bytes of memory, about."""
        return len(self.data)

    def records(self) -> Iterator[tuple[str, Record | BadRecordError]]:
        """Each record with its place, or why it is none."""
        for number, line in enumerate(self.data.split(b"\n"), start=self.first):
            line = line.removeprefix(codecs.BOM_UTF8) if number == 1 else line
            if line and not line.isspace():
                yield f"{self.file}: line {number}", _json_object(line)


@dataclass(frozen=True)
class RowBatch:
    """Rows of a table, from row number `first` (1-based) on, as columns: those travel faster than a record a row."""

    file: str
    first: int
    columns: dict[str, list[Any]]
    size: int
    stored_bytes: int

    def records(self) -> Iterator[tuple[str, Record | BadRecordError]]:
        """Each row with its place."""
        for number, row in enumerate(zip(*self.columns.values(), strict=True), start=self.first):
            yield f"{self.file}: row {number}", dict(zip(self.columns, row, strict=True))


@dataclass(frozen=True)
class TextBatch:
    """Whole text files, each one document under the key `text`."""

    texts: list[tuple[str, bytes]]
    size: int
    stored_bytes: int

    def records(self) -> Iterator[tuple[str, Record | BadRecordError]]:
        """Each file as a record with its name as the place."""
        for file, text in self.texts:
            if b"\0" in text:
                yield file, BadRecordError("holds NUL bytes, so it is no UTF-8 text")
            else:
                yield file, {"text": text.removeprefix(codecs.BOM_UTF8)}


Batch = LineBatch | RowBatch | TextBatch


def _json_object(line: bytes) -> Record | BadRecordError:
    try:
        value = json.loads(utf8(line))
    except BadRecordError as error:
        return error
    except json.JSONDecodeError as error:
        return BadRecordError(f"no valid JSON: {error.msg} at column {error.colno}")
    except (ValueError, RecursionError) as error:
        return BadRecordError(f"no valid JSON: {error}")
    if not isinstance(value, dict):
        return BadRecordError(f"a JSON {type(value).__name__}, expected an object")
    return value


def utf8(data: bytes) -> str:
    """Decode UTF-8; raises BadRecordError naming the first byte that is none."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadRecordError(
            f"not UTF-8: byte 0x{data[error.start]:02x} at offset {error.start}; convert the file to UTF-8"
        ) from None
