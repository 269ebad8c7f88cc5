"""A study's `datasets` entries: what is accepted, and the one line that names what is not."""

from pathlib import Path
from typing import Any

import pytest

from longca.data.corpus import Corpus, parse_corpus
from longca.data.corpus_files import expand_files
from longca.data.layouts import LAYOUTS
from longca.errors import LongcaError
from longca.study.corpora import read_corpus

FILES = {"layout": "pile", "files": ["a.jsonl"]}


def test_defaults() -> None:
    corpus = parse_corpus("mine", FILES, "here")
    assert corpus == Corpus(layout="pile", files=["a.jsonl"])
    assert (corpus.tokenizer, corpus.bad_records, corpus.subsets, corpus.column) == (
        "tekken",
        "stop",
        None,
        None,
    )


@pytest.mark.parametrize(
    ("name", "entry", "message"),
    [
        (
            "mine",
            {"layout": "pil", "files": ["a"]},
            "here: layout: 'pil' is not a layout; did you mean 'pile'? allowed: pile, prolong, slimpajama, text",
        ),
        ("mine", {"files": ["a"]}, "here: layout: Field required"),
        ("mine", {"layout": "pile"}, "here: give either files or hugging_face"),
        ("mine", FILES | {"hugging_face": "a/b"}, "here: give either files or hugging_face"),
        ("mine", FILES | {"split": "test"}, "here: split goes with hugging_face, not with files"),
        (
            "mine",
            FILES | {"fils": 1},
            "here: fils: 'fils' is not a key; did you mean 'files'? allowed: bad_records,",
        ),
        ("mine", FILES | {"tokenizer": "gpt"}, "here: tokenizer: 'gpt' is not a tokenizer; allowed: tekken"),
        (
            "mine",
            FILES | {"bad_records": "ignore"},
            "here: bad_records: Input should be 'stop' or 'skip', found 'ignore'",
        ),
        ("mine", FILES | {"files": []}, "here: files: List should have at least 1 item"),
        ("mine", FILES | {"files": "a.jsonl"}, "here: files: Input should be a valid list"),
        ("mine", FILES | {"files": [3]}, "here: files.0: Input should be a valid string"),
        ("mine", FILES | {"subsets": []}, "here: subsets: List should have at least 1 item"),
        (
            "mine",
            {"layout": "text", "files": ["a"], "subsets": ["b"]},
            "here: layout text has no subsets; layouts with subsets are pile, slimpajama",
        ),
        ("mine", None, "here: Input should be a valid dictionary"),
        ("pile", FILES, "here: dataset name 'pile'"),
        ("auto", FILES, "here: dataset name 'auto'"),
        ("mine_long", FILES, "here: dataset name 'mine_long'"),
        ("../mine", FILES, "here: dataset name '../mine': use lower-case letters, digits and '_'"),
        ("", FILES, "here: dataset name ''"),
    ],
)
def test_a_wrong_entry_is_named(name: str, entry: Any, message: str) -> None:
    with pytest.raises(LongcaError) as caught:
        parse_corpus(name, entry, "here")
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


def test_the_entry_of_a_study(tmp_path: Path) -> None:
    study = tmp_path / "mine.yaml"
    study.write_text(
        "name: mine\ndatasets:\n  books: {layout: text, files: [books]}\n  bad: {layout: text}\n"
    )
    assert read_corpus(study, "books") == Corpus(layout="text", files=["books"])
    with pytest.raises(
        LongcaError,
        match=r"mine.yaml: datasets: 'web' is not a dataset; allowed: bad, books, pile",
    ):
        read_corpus(study, "web")
    with pytest.raises(LongcaError, match=r"mine.yaml: datasets.bad: give either files or hugging_face"):
        read_corpus(study, "bad")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a: [", r":1: did not find expected node content|:1: expected the node content"),
        ("- 1", ": holds no mapping"),
        ("", ": holds no mapping"),
        ("datasets: 5", ": datasets: 'web' is not a dataset; allowed: pile"),
        ("datasets: !!python/object:os.system {}", ":1: could not determine a constructor"),
    ],
)
def test_a_study_without_datasets_is_named(content: str, message: str, tmp_path: Path) -> None:
    study = tmp_path / "broken.yaml"
    study.write_text(content)
    with pytest.raises(LongcaError, match=f"broken.yaml({message})"):
        read_corpus(study, "web")


def make_files(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()


def test_globs_and_folders(tmp_path: Path) -> None:
    make_files(
        tmp_path,
        "a.jsonl",
        "b.JSONL.zst",
        "deep/er/c.parquet",
        "README.md",
        "notes.txt",
        ".cache/d.jsonl",
        "x.bin",
    )

    def found(layout: str, *patterns: str) -> list[str]:
        files = expand_files([str(tmp_path / pattern) for pattern in patterns], LAYOUTS[layout])
        return [str(file.relative_to(tmp_path)) for file in files]

    assert found("pile", ".") == ["a.jsonl", "b.JSONL.zst", "deep/er/c.parquet"]
    assert found("text", ".") == ["README.md", "notes.txt"]
    assert found("pile", "**/*.parquet", "a.jsonl", "*.jsonl") == ["a.jsonl", "deep/er/c.parquet"]
    assert found("pile", "d*") == ["deep/er/c.parquet"]
    with pytest.raises(LongcaError, match=r"x.bin: cannot tell its kind; a corpus file ends in .jsonl"):
        found("pile", "*.bin")
    with pytest.raises(LongcaError, match=r"files: '.*/\*.json' matches no file"):
        found("pile", "*.json")
    with pytest.raises(LongcaError, match=r"deep' matches no file with .txt, .md"):
        found("text", "deep")


def test_a_broken_link_is_named(tmp_path: Path) -> None:
    (tmp_path / "gone.jsonl").symlink_to(tmp_path / "absent.jsonl")
    with pytest.raises(LongcaError, match=r"gone\.jsonl: a link to a file that is not there"):
        expand_files([str(tmp_path / "*.jsonl")], LAYOUTS["pile"])


def test_a_name_with_brackets_is_a_name_first(tmp_path: Path) -> None:
    make_files(tmp_path, "part[1].jsonl", "part1.jsonl")
    assert expand_files([str(tmp_path / "part[1].jsonl")], LAYOUTS["pile"]) == [tmp_path / "part[1].jsonl"]


def test_patterns_start_at_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_files(tmp_path, "data/a.jsonl")
    monkeypatch.chdir(tmp_path)
    assert expand_files(["data/*.jsonl"], LAYOUTS["pile"]) == [Path("data/a.jsonl")]
    monkeypatch.setenv("HOME", str(tmp_path))
    assert expand_files(["~/data"], LAYOUTS["pile"]) == [tmp_path / "data/a.jsonl"]
