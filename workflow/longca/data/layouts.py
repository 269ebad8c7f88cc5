"""Record layouts: which keys of a corpus's records hold what is counted; a new one is an entry of LAYOUTS."""

from dataclasses import dataclass
from typing import Any

from longca.errors import LongcaError

RECORD_SUFFIXES = (".jsonl", ".ndjson", ".json", ".parquet")
TEXT_SUFFIXES = (".txt", ".md")


class BadRecordError(Exception):
    """A record that cannot be counted; the message says why. Its place is known to whoever reads the file."""


# What a column may hold, by type: text is tokenised, a whole number is a ready length in tokens, and token
# ids are as long as their list (a range stands for a list whose ids were not read).
TEXT = (str, bytes)
LENGTH = (int,)
TOKEN_IDS = (list, range)
ANY = TEXT + LENGTH + TOKEN_IDS
WORDS = {str: "text", int: "a whole number", list: "a list of token ids"}


@dataclass(frozen=True)
class Layout:
    """How the records of a family of corpora look.

    columns: the keys that can be counted and what they hold; the first that a record has is taken.
    subset: the path of the key that names a record's subset, None where records have none.
    folder_suffixes: what a folder in `files` stands for, archives (.gz, .zst) of them included.
    """

    columns: dict[str, tuple[type, ...]]
    subset: tuple[str, ...] | None
    folder_suffixes: tuple[str, ...]


LAYOUTS = {
    "pile": Layout({"text": TEXT}, ("meta", "pile_set_name"), RECORD_SUFFIXES),
    "slimpajama": Layout({"text": TEXT}, ("meta", "redpajama_set_name"), RECORD_SUFFIXES),
    "prolong": Layout({"length": LENGTH, "input_ids": TOKEN_IDS, "text": TEXT}, None, RECORD_SUFFIXES),
    "text": Layout({"text": TEXT}, None, TEXT_SUFFIXES),
}


def counted_column(record: dict[str, Any], layout: Layout) -> str:
    """The first column of `layout` that `record` has; raises BadRecordError where it has none."""
    for column in layout.columns:
        if column in record:
            return column
    found = ", ".join(sorted(map(str, record))[:8]) or "none"
    raise BadRecordError(f"no key {' or '.join(layout.columns)} (its keys: {found})")


def table_columns(place: str, names: list[str], layout: Layout) -> list[str]:
    """The columns to read of a table with columns `names`: the counted one, then the subset's.

    Raises LongcaError where the table has no column that can be counted.
    """
    try:
        columns = [counted_column(dict.fromkeys(names), layout)]
    except BadRecordError as error:
        raise LongcaError(f"{place}: {error}") from None
    if layout.subset is not None and layout.subset[0] in names:
        columns.append(layout.subset[0])
    return columns


def ready_length(column: str, value: Any, layout: Layout) -> int | None:
    """The tokens a value states by itself: a whole number, or the size of a list of token ids; None for text.

    Raises BadRecordError for a value of another type than the column holds, and a negative length.
    """
    allowed = layout.columns[column]
    if type(value) not in allowed:
        words = " or ".join(WORDS[kind] for kind in allowed if kind in WORDS)
        raise BadRecordError(f"{column} is {type(value).__name__}, expected {words}")
    if isinstance(value, str | bytes):
        return None
    if isinstance(value, int):
        if value < 0:
            raise BadRecordError(f"{column} is {value}, a length cannot be negative")
        return value
    if isinstance(value, list) and not set(map(type, value)) <= {int}:
        raise BadRecordError(f"{column} is a list, but not of whole numbers")
    return len(value)


def subset_of(record: dict[str, Any], path: tuple[str, ...]) -> str:
    """The name of a record's subset, found along `path`; raises BadRecordError where there is none."""
    value: Any = record
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    if not isinstance(value, str):
        raise BadRecordError(f"no subset name at {'.'.join(path)}")
    return value
