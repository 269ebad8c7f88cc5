"""Small corpora for the tests of the data stage, written in every container."""

import gzip
import json
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

from longca.data.corpus import Corpus
from longca.data.lengths import count_corpus

TEXTS = [
    "The quick brown fox jumps over the lazy dog.",
    "def add(a: int, b: int) -> int:\n    return a + b  # 2 + 2 = 4\n",
    "Zürich, São Paulo, 東京、北京。 Ελλάδα \U0001f600 naïve",
    "one\n\n\ttwo   three\r\nfour 1234567890 https://example.org/a?b=c&d=e",
    "\u2028 line separators \x85 are no line ends \x0b here",
    "word " * 700,
    "a",
]
# The command of this very environment, whatever the PATH.
LONGCA = str(Path(sys.executable).with_name("longca"))
CONTAINERS = ("jsonl", "jsonl.gz", "jsonl.zst", "parquet")


def json_lines(records: list[Any]) -> bytes:
    """One JSON object a line; half of the characters stay escaped, as corpora have both forms."""
    return "".join(
        json.dumps(record, ensure_ascii=index % 2 == 0) + "\n" for index, record in enumerate(records)
    ).encode()


def write_records(folder: Path, container: str, records: list[dict[str, Any]]) -> Path:
    """Write records as folder/corpus.<container>; Parquet in row groups of two."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"corpus.{container}"
    if container == "parquet":
        pq.write_table(pa.Table.from_pylist(records), path, row_group_size=2)
        return path
    data = json_lines(records)
    if container.endswith(".gz"):
        data = gzip.compress(data)
    if container.endswith(".zst"):
        data = zstandard.compress(data)
    path.write_bytes(data)
    return path


def lengths_of(*files: Path, workers: int = 1, **keys: Any) -> dict[int, int]:
    """Documents by length of the corpus made of `files`; `keys` are a study's, layout pile by default."""
    corpus = Corpus.model_validate({"layout": "pile", "files": [str(file) for file in files]} | keys)
    histogram, _ = count_corpus("mine", corpus, workers)
    return {lower: count or 0 for (lower, _), count in zip(histogram.bins, histogram.documents, strict=True)}
