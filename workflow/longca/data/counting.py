"""Counting the documents of a batch, and adding the counts up."""

from collections import Counter
from dataclasses import dataclass, field

from longca.data.batches import Batch, Record, utf8
from longca.data.corpus import Corpus
from longca.data.layouts import BadRecordError, counted_column, ready_length, subset_of
from longca.data.tokens import count_tokens, load_tokenizer
from longca.errors import LongcaError


@dataclass
class Tally:
    """What was counted so far.

    lengths: documents by their length in tokens, empty ones left out.
    sources: documents by the column they were counted from, and how.
    subsets: records by subset, where the corpus chooses subsets.
    empty: documents of 0 tokens.
    left_out: records of subsets that were not chosen.
    bad, first_bad: records skipped, and the first of them with its reason.
    """

    lengths: Counter[int] = field(default_factory=Counter)
    sources: Counter[str] = field(default_factory=Counter)
    subsets: Counter[str] = field(default_factory=Counter)
    empty: int = 0
    left_out: int = 0
    bad: int = 0
    first_bad: str | None = None

    def add(self, other: "Tally") -> None:
        """Add the counts of a later batch."""
        self.lengths.update(other.lengths)
        self.sources.update(other.sources)
        self.subsets.update(other.subsets)
        self.empty += other.empty
        self.left_out += other.left_out
        self.bad += other.bad
        self.first_bad = self.first_bad or other.first_bad

    def notes(self) -> list[str]:
        """What a person is to know beside the lengths: how documents were counted, and what was left out."""
        notes = [
            f"{documents:,} documents from {source}" for source, documents in sorted(self.sources.items())
        ]
        if self.empty:
            notes.append(f"{self.empty:,} documents left out: empty")
        if self.left_out:
            notes.append(f"{self.left_out:,} documents left out: of other subsets")
        if self.bad:
            notes.append(f"{self.bad:,} records skipped as bad, the first: {self.first_bad}")
        return notes


def count_batch(corpus: Corpus, batch: Batch) -> Tally:
    """Count one batch; raises LongcaError naming the place of a bad record where the corpus says stop."""
    tally = Tally()
    for place, record in batch.records():
        try:
            _count_record(tally, corpus, record)
        except BadRecordError as error:
            if corpus.bad_records == "stop":
                raise LongcaError(f"{place}: {error} (bad_records: skip leaves such out)") from None
            tally.bad += 1
            tally.first_bad = tally.first_bad or f"{place}: {error}"
    return tally


def _count_record(tally: Tally, corpus: Corpus, record: Record | BadRecordError) -> None:
    if isinstance(record, BadRecordError):
        raise record
    layout = corpus.keys
    if corpus.subsets is not None and layout.subset is not None:
        subset = subset_of(record, layout.subset)
        tally.subsets[subset] += 1
        if subset not in corpus.subsets:
            tally.left_out += 1
            return
    column = counted_column(record, layout)
    value = record[column]
    length = ready_length(column, value, layout)
    source = f"{column}, as it stands"
    if length is None:
        text = utf8(value) if isinstance(value, bytes) else value
        length = count_tokens(load_tokenizer(corpus.tokenizer), text)
        source = f"{column}, tokenised by {corpus.tokenizer}"
    if length == 0:
        tally.empty += 1
        return
    tally.sources[source] += 1
    tally.lengths[length] += 1
