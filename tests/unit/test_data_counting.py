"""Counting corpora: each container and layout gives the same lengths, each fault its own clear word."""

import gzip
import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from data_corpora import CONTAINERS, TEXTS, json_lines, lengths_of, write_records

from longca.data.batches import BATCH_BYTES, RowBatch
from longca.data.corpus import Corpus
from longca.data.lengths import count_corpus
from longca.data.readers import COMPRESSION
from longca.data.tokens import load_tokenizer
from longca.data.workers import counting_processes
from longca.errors import LongcaError


def tokens(text: str) -> int:
    return len(load_tokenizer("tekken")(text))


EXPECTED = Counter(map(tokens, TEXTS))
RECORDS: dict[str, list[dict[str, Any]]] = {
    "pile": [{"text": text, "meta": {"pile_set_name": "ArXiv"}} for text in TEXTS],
    "slimpajama": [{"text": text, "meta": {"redpajama_set_name": "RedPajamaBook"}} for text in TEXTS],
    "prolong": [{"length": tokens(text), "text": "not counted"} for text in TEXTS],
    "text": [{"title": "not counted", "text": text} for text in TEXTS],
}


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("layout", RECORDS)
def test_every_container_and_layout_gives_the_same_lengths(
    layout: str, container: str, workers: int, tmp_path: Path
) -> None:
    file = write_records(tmp_path, container, RECORDS[layout])
    assert lengths_of(file, layout=layout, workers=workers) == EXPECTED


@pytest.mark.parametrize("container", CONTAINERS)
def test_prolong_counts_token_ids_and_text_too(container: str, tmp_path: Path) -> None:
    ids = [{"input_ids": list(range(tokens(text)))} for text in TEXTS]
    assert lengths_of(write_records(tmp_path / "ids", container, ids), layout="prolong") == EXPECTED
    texts = [{"text": text} for text in TEXTS]
    assert lengths_of(write_records(tmp_path / "text", container, texts), layout="prolong") == EXPECTED


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("kind", ["text", "length", "ids"])
def test_a_column_of_ones_own(container: str, kind: str, tmp_path: Path) -> None:
    values = {
        "text": TEXTS,
        "length": [tokens(text) for text in TEXTS],
        "ids": [[9] * tokens(text) for text in TEXTS],
    }
    records = [{"mine": value, "text": "not counted"} for value in values[kind]]
    assert lengths_of(write_records(tmp_path, container, records), column="mine") == EXPECTED


@pytest.mark.parametrize("suffix", [".txt", ".md", ".txt.gz", ".md.zst"])
def test_a_folder_of_text_is_a_document_a_file(suffix: str, tmp_path: Path) -> None:
    pack: Callable[[bytes], bytes] = bytes
    if suffix.endswith(".gz"):
        pack = gzip.compress
    if suffix.endswith(".zst"):
        pack = zstandard.compress
    for number, text in enumerate(TEXTS):
        file = tmp_path / str(number % 3) / f"{number}{suffix}"
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(pack(text.encode()))
    (tmp_path / "empty.txt").touch()
    (tmp_path / "table.csv").write_text("no text file")
    assert lengths_of(tmp_path, layout="text") == EXPECTED


@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize(("layout", "key"), [("pile", "pile_set_name"), ("slimpajama", "redpajama_set_name")])
def test_chosen_subsets_alone_are_counted(layout: str, key: str, container: str, tmp_path: Path) -> None:
    names = ["Books3", "ArXiv", "Github", "ArXiv", "Books3", "Github", "Github"]
    records = [{"text": text, "meta": {key: name}} for text, name in zip(TEXTS, names, strict=True)]
    file = write_records(tmp_path, container, records)
    chosen = [text for text, name in zip(TEXTS, names, strict=True) if name != "Github"]
    assert lengths_of(file, layout=layout, subsets=["ArXiv", "Books3"]) == Counter(map(tokens, chosen))
    with pytest.raises(LongcaError, match="no record of 'arxiv'; the corpus has Github, Books3, ArXiv"):
        lengths_of(file, layout=layout, subsets=["Books3", "arxiv"])


LINES = json_lines([{"text": text} for text in TEXTS])


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("no line end at the end.jsonl", LINES.rstrip(b"\n")),
        ("windows line ends.jsonl", LINES.replace(b"\n", b"\r\n")),
        ("blank lines.jsonl", b"\n \n" + LINES.replace(b"\n", b"\n\t\n\n") + b"\n"),
        ("byte order mark.jsonl", b"\xef\xbb\xbf" + LINES),
        ("many frames.jsonl.zst", b"".join(zstandard.compress(line + b"\n") for line in LINES.splitlines())),
        ("many members.jsonl.gz", b"".join(gzip.compress(line + b"\n") for line in LINES.splitlines())),
        (
            "a frame cut inside a line.jsonl.zst",
            zstandard.compress(LINES[:50]) + zstandard.compress(LINES[50:]),
        ),
        ("another suffix.ndjson", LINES),
        ("yet another.json.gz", gzip.compress(LINES)),
    ],
)
def test_forms_of_the_same_lines(name: str, data: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(data)
    assert lengths_of(tmp_path / name) == EXPECTED


@pytest.mark.parametrize("workers", [1, 2])
def test_a_corpus_of_many_batches_and_files(workers: int, tmp_path: Path) -> None:
    texts = [f"{text} {number}" for number in range(300) for text in TEXTS]
    records = [{"text": text} for text in texts]
    files = [
        write_records(tmp_path / "a", "jsonl.zst", records[:1000]),
        write_records(tmp_path / "b", "parquet", records[1000:2000]),
        write_records(tmp_path / "c", "jsonl", [*records[2000:], {"text": "long " * 400_000}]),
    ]
    assert files[2].stat().st_size > 3 * 512 * 1024
    assert lengths_of(*files, workers=workers) == Counter(map(tokens, [*texts, "long " * 400_000]))


def test_parquet_of_large_and_dictionary_strings(tmp_path: Path) -> None:
    for name, kind in (("large", pa.large_string()), ("dictionary", pa.dictionary(pa.int32(), pa.string()))):
        file = tmp_path / f"{name}.parquet"
        pq.write_table(pa.table({"text": pa.array(TEXTS).cast(kind)}), file)
        assert lengths_of(file) == EXPECTED


def test_empty_documents_are_left_out_and_said(tmp_path: Path) -> None:
    records = [{"text": ""}, {"text": "some"}, {"text": ""}]
    corpus = Corpus(layout="pile", files=[str(write_records(tmp_path, "jsonl", records))])
    histogram, tally = count_corpus("mine", corpus, 1)
    assert (histogram.documents, tally.empty, tally.bad) == ((1,), 2, 0)
    assert lengths_of(write_records(tmp_path, "jsonl", [{"length": 0}, {"length": 4}]), layout="prolong") == {
        4: 1
    }


BAD_LINES = {
    "cut JSON": (b'{"text": "abc', "no valid JSON: Unterminated string starting at at column 10"),
    "an array": (b"[1, 2]", "a JSON list, expected an object"),
    "deep nesting": (b'{"text":' + b"[" * 100_000, "no valid JSON"),
    "latin-1": ('{"text": "é"}'.encode("latin-1"), "not UTF-8: byte 0xe9 at offset 10"),
    "utf-16": ('{"text": "é"}'.encode("utf-16"), "not UTF-8: byte 0xff at offset 0"),
    "no text": (b'{"content": "abc", "id": 1}', "no key text (its keys: content, id)"),
    "null": (b'{"text": null}', "text is NoneType, expected text"),
    "a number": (b'{"text": 5}', "text is int, expected text"),
    "a list": (b'{"text": ["a"]}', "text is list, expected text"),
}


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("fault", BAD_LINES)
def test_a_bad_line_stops_with_its_place_or_is_skipped_and_counted(
    fault: str, workers: int, tmp_path: Path
) -> None:
    line, message = BAD_LINES[fault]
    file = tmp_path / "bad.jsonl.zst"
    file.write_bytes(zstandard.compress(LINES + line + b"\n" + LINES + line))
    place = f"{file}: line {len(TEXTS) + 1}: {message}"
    with pytest.raises(LongcaError) as caught:
        lengths_of(file, workers=workers)
    assert str(caught.value).startswith(place)
    assert "\n" not in str(caught.value)
    corpus = Corpus(layout="pile", files=[str(file)], bad_records="skip")
    histogram, tally = count_corpus("mine", corpus, workers)
    assert sum(filter(None, histogram.documents)) == 2 * len(TEXTS)
    assert tally.bad == 2
    assert str(tally.first_bad).startswith(place)


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"length": -1}, "length is -1, a length cannot be negative"),
        ({"length": 2.0}, "length is float, expected a whole number"),
        ({"length": True}, "length is bool, expected a whole number"),
        ({"length": "12"}, "length is str, expected a whole number"),
        ({"input_ids": 12}, "input_ids is int, expected a list of token ids"),
        ({"input_ids": ["a"]}, "input_ids is a list, but not of whole numbers"),
        ({"tokens": 12}, "no key length or input_ids or text (its keys: tokens)"),
    ],
)
def test_a_bad_length_is_named(record: dict[str, Any], message: str, tmp_path: Path) -> None:
    file = write_records(tmp_path, "jsonl", [{"length": 3}, record])
    with pytest.raises(LongcaError) as caught:
        lengths_of(file, layout="prolong")
    assert f"{file}: line 2: {message}" in str(caught.value)


def test_a_record_without_its_subset_is_named(tmp_path: Path) -> None:
    file = write_records(tmp_path, "jsonl", [{"text": "a", "meta": {"pile_set_name": "A"}}, {"text": "b"}])
    assert lengths_of(file) == {1: 2}
    with pytest.raises(LongcaError, match=r"line 2: no subset name at meta\.pile_set_name"):
        lengths_of(file, subsets=["A"])


def test_a_bad_row_of_a_table_is_named(tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    values = pa.array(["good", None, "good"])
    pq.write_table(pa.table({"text": values}), file)
    with pytest.raises(LongcaError, match="row 2: text is NoneType, expected text"):
        lengths_of(file)
    assert lengths_of(file, bad_records="skip") == {1: 2}
    pq.write_table(pa.table({"text": pa.array([b"good", b"caf\xe9"], pa.binary())}), file)
    with pytest.raises(LongcaError, match="row 2: not UTF-8: byte 0xe9 at offset 3"):
        lengths_of(file)


@pytest.mark.parametrize("data", ["é".encode("latin-1"), "abc".encode("utf-16"), "abc".encode("utf-16-le")])
def test_a_text_file_of_another_encoding_is_named(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("good")
    (tmp_path / "b.txt").write_bytes(data)
    with pytest.raises(LongcaError, match=r"b\.txt: (not UTF-8|holds NUL bytes)"):
        lengths_of(tmp_path, layout="text")
    assert lengths_of(tmp_path, layout="text", bad_records="skip") == {1: 1}


UNREAD = "cannot be read:"


def parquet(path: Path) -> bytes:
    pq.write_table(pa.table({"text": TEXTS}), path)
    return path.read_bytes()


@pytest.mark.parametrize("bad_records", ["stop", "skip"])
@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        (
            "a.jsonl.zst",
            zstandard.compress(LINES)[:-5],
            f"{UNREAD} Truncated compressed stream",
        ),
        (
            "a.jsonl.zst",
            zstandard.compress(LINES) + zstandard.compress(LINES)[:9],
            "Truncated compressed stream",
        ),
        (
            "a.jsonl.zst",
            LINES,
            f"{UNREAD} ZSTD decompress failed: Unknown frame descriptor",
        ),
        ("a.jsonl.gz", gzip.compress(LINES)[:-1], f"{UNREAD} Truncated compressed stream"),
        ("a.jsonl.gz", gzip.compress(LINES)[:40], f"{UNREAD} Truncated compressed stream"),
        ("a.jsonl.gz", LINES, f"{UNREAD} zlib inflate failed: incorrect header check"),
        ("a.txt.gz", gzip.compress(LINES)[:40], "cannot be read: Truncated compressed stream"),
        ("a.parquet", LINES, "cannot be read as Parquet: "),
        ("a.parquet", None, "cannot be read as Parquet: "),
    ],
)
def test_a_truncated_or_foreign_file_stops_whatever_was_chosen(
    name: str, data: bytes | None, message: str, bad_records: str, tmp_path: Path
) -> None:
    file = tmp_path / name
    file.write_bytes(parquet(file)[:-20] if data is None else data)
    with pytest.raises(LongcaError) as caught:
        lengths_of(file, bad_records=bad_records)
    assert str(caught.value).startswith(f"{file}: ")
    assert message in str(caught.value)


@pytest.mark.parametrize("suffix", ["jsonl", "txt"])
@pytest.mark.parametrize(("ending", "compress"), [("gz", gzip.compress), ("zst", zstandard.compress)])
def test_an_archive_cut_anywhere_is_named(
    suffix: str, ending: str, compress: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    """From the first byte missing to the last: nothing of it counts as a shorter corpus, or as an empty one."""
    whole = tmp_path / f"a.{suffix}"
    whole.write_bytes(json_lines([{"text": "one"}, {"text": "two words"}]))
    assert sum(lengths_of(whole, layout="text").values()) == (2 if suffix == "jsonl" else 1)
    archive = compress(whole.read_bytes())
    file = tmp_path / f"b.{suffix}.{ending}"
    for size in range(len(archive)):
        file.write_bytes(archive[:size])
        with pytest.raises(LongcaError) as caught:
            lengths_of(whole, file, layout="text")
        wrong = (
            "cannot be read: " if size else f"has 0 bytes, so it is no {COMPRESSION[f'.{ending}']} archive"
        )
        assert str(caught.value).startswith(f"{file}: {wrong}"), size


@pytest.mark.parametrize("container", ["jsonl.gz", "jsonl.zst"])
def test_an_archive_cut_late_says_what_was_read(container: str, tmp_path: Path) -> None:
    record = {"length": 7, "padding": random.Random(0).randbytes(BATCH_BYTES // 8).hex()}
    file = write_records(tmp_path, container, [record] * 9)
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(LongcaError) as caught:
        lengths_of(file, layout="prolong")
    found = re.search(r": cannot be read past line (\d+): ", str(caught.value))
    # Whole lines of whole batches.
    assert found is not None and 4 <= int(found[1]) <= 9


def test_damage_inside_a_table_is_named(tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    data = bytearray(parquet(file))
    data[4:60] = b"\xff" * 56
    file.write_bytes(bytes(data))
    with pytest.raises(LongcaError, match=r"a\.parquet: cannot be read as Parquet: "):
        lengths_of(file)


def test_a_table_without_the_column_is_named(tmp_path: Path) -> None:
    file = write_records(tmp_path, "parquet", [{"content": "a", "id": 1}])
    with pytest.raises(LongcaError, match=r"corpus\.parquet: no key text \(its keys: content, id\)"):
        lengths_of(file)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", r"mine: no document to count in .*a\.jsonl \(0 empty, 0 bad records\)"),
        (b"\n\n", r"\(0 empty, 0 bad records\)"),
        (b'{"text": ""}\n', r"\(1 empty, 0 bad records\)"),
        (b"no\n", r"\(0 empty, 1 bad records\)"),
    ],
)
def test_an_empty_corpus_is_an_error(data: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(data)
    with pytest.raises(LongcaError, match=message):
        lengths_of(tmp_path / "a.jsonl", bad_records="skip")


def test_lone_surrogates_are_counted_as_json_has_them(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps({"text": "\ud83d alone"}) + "\n")
    assert lengths_of(tmp_path / "a.jsonl") == {tokens("\ufffd alone"): 1}


def test_large_batches_wait_for_one_another() -> None:
    pulled: list[int] = []

    def batches(size: int) -> Iterator[RowBatch]:
        for number in range(12):
            pulled.append(number)
            yield RowBatch("made up", number, {"length": [5]}, size, stored_bytes=number)

    corpus = Corpus(layout="prolong", files=["made up"])
    for size, ahead in ((1, 5), (30 * 2**20, 3), (10**9, 2)):
        pulled.clear()
        most = 0
        with counting_processes(corpus, workers=2) as count:
            for done, (stored_bytes, tally) in enumerate(count(batches(size))):
                assert (stored_bytes, tally.lengths) == (done, {5: 1})
                most = max(most, len(pulled) - done)
        assert len(pulled) == 12
        assert most == ahead
