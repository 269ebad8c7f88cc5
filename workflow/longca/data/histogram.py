"""Document lengths as a histogram: read from, and written to, results/<study>/lengths/<dataset>.csv."""

import csv
import io
import math
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from longca.errors import LongcaError
from longca.files import write_atomically
from longca.names import unknown_name

PUBLISHED = ("pile", "prolong64k", "prolong512k")
COLUMNS = ("lower_tokens", "upper_tokens", "probability", "documents")
RESOURCE = Path(__file__).parents[2] / "resources" / "length_histograms.csv"
# Published probabilities are rounded and add up to 0.9995 at worst; further off is a mistake, not rounding.
PROBABILITY_SLACK = 1e-3


@dataclass(frozen=True)
class Histogram:
    """How long the documents of a dataset are.

    bins: (lower, upper) in tokens; published ones are printed as [lower, upper), a counted corpus has lower =
    upper.
    weights: the share of documents in each bin, in the order of `bins`; they need not add up to exactly 1.
    documents: how many documents each bin counted, None where a publication gives shares only.
    """

    bins: tuple[tuple[int, int], ...]
    weights: tuple[float, ...]
    documents: tuple[int | None, ...]


def histogram_of_lengths(lengths: Counter[int]) -> Histogram:
    """The histogram of counted documents, one bin a distinct length (tokens), shortest first."""
    total = lengths.total()
    ordered = sorted(length for length, documents in lengths.items() if documents)
    return Histogram(
        bins=tuple((length, length) for length in ordered),
        weights=tuple(lengths[length] / total for length in ordered),
        documents=tuple(lengths[length] for length in ordered),
    )


@cache
def published_histogram(name: str) -> Histogram:
    """The published histogram `name`, one of PUBLISHED (source: workflow/resources/README.md).

    Raises LongcaError for another name.
    """
    if name not in PUBLISHED:
        raise LongcaError(unknown_name(name, PUBLISHED, "published dataset"))
    with RESOURCE.open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["dataset"] == name]
    return Histogram(
        bins=tuple((int(row["lower_tokens"]), int(row["upper_tokens"])) for row in rows),
        weights=tuple(float(row["probability"]) for row in rows),
        documents=(None,) * len(rows),
    )


def write_histogram(path: Path, histogram: Histogram) -> None:
    """Write `histogram` as CSV in one rename; floats keep every digit, reading gives the same values."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for (lower, upper), weight, documents in zip(
        histogram.bins, histogram.weights, histogram.documents, strict=True
    ):
        writer.writerow((lower, upper, repr(weight), "" if documents is None else documents))
    write_atomically(path, text.getvalue())


def read_histogram(path: Path) -> Histogram:
    """Read a lengths file and check every value.

    Raises LongcaError naming file and line: unreadable, another header, not a whole number, an empty or
    reversed bin, a probability outside [0, 1], shares that do not add up to 1 or contradict the documents, no
    rows.
    """
    try:
        with path.open(newline="", encoding="utf-8") as file:
            rows = list(csv.reader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise LongcaError(f"{path}: cannot be read as a lengths CSV: {error}") from None
    if not rows or tuple(rows[0]) != COLUMNS:
        found = ",".join(rows[0]) if rows else "nothing"
        raise LongcaError(f"{path}: line 1: the header must be {','.join(COLUMNS)}, found {found}")
    if len(rows) == 1:
        raise LongcaError(f"{path}: holds no lengths, only a header")
    parsed = [_parse_row(f"{path}: line {line}", row) for line, row in enumerate(rows[1:], start=2)]
    histogram = Histogram(
        bins=tuple((lower, upper) for lower, upper, _, _ in parsed),
        weights=tuple(weight for _, _, weight, _ in parsed),
        documents=tuple(documents for _, _, _, documents in parsed),
    )
    _check_shares(path, histogram)
    return histogram


def _parse_row(place: str, row: list[str]) -> tuple[int, int, float, int | None]:
    if len(row) != len(COLUMNS):
        raise LongcaError(f"{place}: {len(row)} values, expected {len(COLUMNS)}: {','.join(COLUMNS)}")
    lower, upper = (_whole_number(place, COLUMNS[index], row[index]) for index in (0, 1))
    if upper < max(lower, 1):
        raise LongcaError(
            f"{place}: upper_tokens {upper} must be at least 1 and not below lower_tokens {lower}"
        )
    try:
        weight = float(row[2])
    except ValueError:
        weight = math.nan
    if not 0 <= weight <= 1:
        raise LongcaError(f"{place}: probability {row[2]!r} is no number from 0 to 1")
    return lower, upper, weight, _whole_number(place, COLUMNS[3], row[3]) if row[3] else None


def _whole_number(place: str, column: str, value: str) -> int:
    if not (value.isascii() and value.isdigit()):
        raise LongcaError(f"{place}: {column} {value!r} is no whole number")
    return int(value)


def _check_shares(path: Path, histogram: Histogram) -> None:
    total = math.fsum(histogram.weights)
    if abs(total - 1) > PROBABILITY_SLACK:
        raise LongcaError(f"{path}: the probabilities add up to {total:.6g}, expected 1")
    counts = [documents for documents in histogram.documents if documents is not None]
    if not counts:
        return
    if len(counts) < len(histogram.documents):
        line = histogram.documents.index(None) + 2
        raise LongcaError(f"{path}: line {line}: documents is empty, other lines have it")
    everything = max(1, sum(counts))
    for line, (weight, documents) in enumerate(zip(histogram.weights, counts, strict=True), start=2):
        if abs(weight - documents / everything) > PROBABILITY_SLACK:
            raise LongcaError(
                f"{path}: line {line}: probability {weight} contradicts {documents} of {everything} documents"
            )
