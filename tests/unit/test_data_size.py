"""A document too large to be counted within the memory bound is refused by its place, whatever its container."""

import gzip
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from longca.data import batches, readers
from longca.data.layouts import LAYOUTS
from longca.data.readers import read_batches
from longca.errors import LongcaError


@pytest.fixture(autouse=True)
def small_limit(monkeypatch):
    monkeypatch.setattr(batches, "LARGEST_DOCUMENT_BYTES", 1000)
    monkeypatch.setattr(readers, "BATCH_BYTES", 64)


def lines(size):
    return b"".join(json.dumps({"text": "x" * length}).encode() + b"\n" for length in (10, size, 10))


@pytest.mark.parametrize("name", ["corpus.jsonl", "corpus.jsonl.gz"])
def test_lines(tmp_path, name):
    path = tmp_path / name
    write = gzip.compress if name.endswith("gz") else bytes
    path.write_bytes(write(lines(900)))
    assert sum(len(batch.data) for batch in read_batches([path], LAYOUTS["pile"])) == len(lines(900))
    path.write_bytes(write(lines(2000)))
    with pytest.raises(LongcaError, match=r"corpus\.jsonl.*:2: a document of over"):
        list(read_batches([path], LAYOUTS["pile"]))


def test_parquet(tmp_path):
    path = tmp_path / "corpus.parquet"
    pq.write_table(pa.table({"text": ["x", "x" * 1000, "x" * 1001]}), path)
    with pytest.raises(LongcaError, match=r"corpus\.parquet: row 3: a document of over"):
        list(read_batches([path], LAYOUTS["pile"]))


def test_texts(tmp_path):
    path = tmp_path / "book.txt"
    path.write_text("x" * 1000)
    assert list(read_batches([path], LAYOUTS["text"]))
    path.write_text("x" * 1001)
    with pytest.raises(LongcaError, match=r"book\.txt: a document of over"):
        list(read_batches([path], LAYOUTS["text"]))
