"""Corpus files as a stream of batches: memory is bounded by the largest document, not by the file."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from longca.data import batches
from longca.data.batches import BATCH_BYTES, Batch, LineBatch, TextBatch, check_size
from longca.data.corpus_files import container_suffix
from longca.data.layouts import TEXT_SUFFIXES, Layout
from longca.data.parquet import row_batches
from longca.errors import LongcaError

COMPRESSION = {".gz": "gzip", ".zst": "zstd"}


def read_batches(files: list[Path], layout: Layout) -> Iterator[Batch]:
    """The records of `files`, in order.

    Raises LongcaError for a file that cannot be read to its end: truncated, damaged, not what its name says.
    """
    texts: list[tuple[str, bytes]] = []
    waiting = stored = 0
    for file in files:
        suffix = container_suffix(file)
        if suffix == ".parquet":
            yield from row_batches(file, layout)
        elif suffix in TEXT_SUFFIXES:
            text, read = _whole_text(file)
            texts.append((str(file), text))
            waiting += len(text)
            stored += read
            if waiting >= BATCH_BYTES:
                yield TextBatch(texts, waiting, stored)
                texts, waiting, stored = [], 0, 0
        else:
            yield from _line_batches(file)
    if texts:
        yield TextBatch(texts, waiting, stored)


def _whole_text(file: Path) -> tuple[bytes, int]:
    """A file's text and how many bytes it takes on disk."""
    try:
        with _opened(file) as (stream, raw):
            text = stream.read(batches.LARGEST_DOCUMENT_BYTES + 1)
            check_size(len(text), str(file))
            return text, raw.tell()
    except OSError as error:
        raise _unreadable(file, "", error) from None


def _line_batches(file: Path) -> Iterator[LineBatch]:
    """Cut a file into batches at line ends; a line longer than a batch is a batch of its own."""
    begun: list[bytes] = []
    line = 1
    stored = 0
    try:
        with _opened(file) as (stream, raw):
            while chunk := stream.read(BATCH_BYTES):
                cut = chunk.rfind(b"\n") + 1
                if cut:
                    data = b"".join((*begun, chunk[:cut]))
                    yield LineBatch(str(file), line, data, raw.tell() - stored)
                    stored = raw.tell()
                    line += data.count(b"\n")
                    begun = []
                begun.append(chunk[cut:])
                check_size(sum(map(len, begun)), f"{file}:{line}")
            if any(begun):
                yield LineBatch(str(file), line, b"".join(begun), raw.tell() - stored)
    except OSError as error:
        raise _unreadable(file, f" past line {line - 1}" if line > 1 else "", error) from None


@contextmanager
def _opened(file: Path) -> Iterator[tuple[pa.NativeFile, pa.NativeFile]]:
    """The file's bytes, decompressed by its suffix, and the raw file, whose position tells the progress."""
    compression = COMPRESSION.get(file.suffix.lower())
    if compression and file.stat().st_size == 0:
        # Arrow reads no archive at all as one of nothing.
        raise LongcaError(
            f"{file}: has 0 bytes, so it is no {compression} archive; a download that was stopped?"
        )
    with pa.OSFile(str(file)) as raw:
        yield (pa.CompressedInputStream(raw, compression) if compression else raw), raw


def _unreadable(file: Path, place: str, error: OSError) -> LongcaError:
    # Arrow reports a cut or damaged archive as an OSError too ("Truncated compressed stream").
    return LongcaError(f"{file}: cannot be read{place}: {' '.join(str(error).split())}")
