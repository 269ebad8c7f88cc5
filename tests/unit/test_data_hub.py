"""A corpus of the hub: through the `datasets` library if it is there, a clear word if not."""

import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
from data_corpora import TEXTS

from longca.data.corpus import Corpus
from longca.data.lengths import count_corpus
from longca.data.tokens import load_tokenizer
from longca.errors import LongcaError


class Stream:
    """As much of an IterableDataset as is used."""

    def __init__(self, rows: list[dict[str, Any]], named: bool) -> None:
        self.rows = rows
        self.column_names = list(rows[0]) if named else None

    def select_columns(self, names: list[str]) -> "Stream":
        return Stream([{name: row[name] for name in names} for row in self.rows], named=True)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)


def install(monkeypatch: pytest.MonkeyPatch, rows: list[dict[str, Any]], named: bool = True) -> list[Any]:
    """Put a `datasets` module in place that streams `rows`; gives the list of the calls it gets."""
    calls: list[Any] = []

    def load_dataset(*positions: Any, **keywords: Any) -> Stream:
        calls.append((positions, keywords))
        return Stream(rows, named)

    module = ModuleType("datasets")
    module.__dict__["load_dataset"] = load_dataset
    monkeypatch.setitem(sys.modules, "datasets", module)
    return calls


def corpus(**keys: Any) -> Corpus:
    return Corpus.model_validate({"layout": "pile", "hugging_face": "some/where"} | keys)


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("workers", [1, 2])
def test_rows_are_streamed_and_counted(workers: int, named: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"id": 1, "text": text, "meta": {"pile_set_name": "A"}} for text in TEXTS] * 400
    calls = install(monkeypatch, rows, named)
    histogram, tally = count_corpus("mine", corpus(split="test", config="en", subsets=["A"]), workers)
    assert calls == [(("some/where", "en"), {"split": "test", "streaming": True})]
    encode = load_tokenizer("tekken")
    assert {length for length, _ in histogram.bins} == {len(encode(text)) for text in TEXTS}
    assert tally.lengths.total() == 400 * len(TEXTS)


def test_token_ids_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, [{"input_ids": [5] * 300}, {"input_ids": [6] * 20}])
    histogram, _ = count_corpus("mine", corpus(layout="prolong"), 1)
    assert histogram.bins == ((20, 20), (300, 300))


def test_a_bad_row_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, [{"text": "a"}, {"text": None}])
    with pytest.raises(LongcaError, match=r"^hugging_face some/where: row 2: text is NoneType"):
        count_corpus("mine", corpus(), 1)


def test_columns_that_do_not_fit_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, [{"content": "a"}])
    with pytest.raises(LongcaError, match=r"^hugging_face some/where: no key text \(its keys: content\)"):
        count_corpus("mine", corpus(), 1)


def test_what_the_library_reports_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, [])

    def load_dataset(*_: Any, **__: Any) -> None:
        raise ConnectionError("no\nnetwork")

    monkeypatch.setitem(sys.modules["datasets"].__dict__, "load_dataset", load_dataset)
    with pytest.raises(LongcaError, match=r"^hugging_face some/where: ConnectionError: no network$"):
        count_corpus("mine", corpus(), 1)


def test_without_the_library_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(
        LongcaError, match="hugging_face: 'some/where' needs the datasets library: make extra"
    ):
        count_corpus("mine", corpus(), 1)
