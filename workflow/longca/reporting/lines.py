"""Records as they lie in a journal or record file, of a series that may still be growing."""

import json
from pathlib import Path

from longca.cases import Case
from longca.errors import LongcaError
from longca.measure.environments import resolve
from longca.measure.record import Record, parse_record


def read_lines(file: Path) -> tuple[list[Record], bool]:
    """The records of a record file or journal, the last of each case, and whether its last line was torn.

    Raises LongcaError for a file that cannot be read, and for any other line that is no record.
    """
    try:
        whole, _, torn = file.read_text(encoding="utf-8").rpartition("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise LongcaError(f"{file}: cannot be read: {error}") from error
    found: dict[Case, Record] = {}
    for number, line in enumerate(whole.splitlines(), 1):
        record = _parse(line, file, f"{file}:{number}")
        found[record.case] = record
    return list(found.values()), bool(torn)


def _parse(line: str, file: Path, source: str) -> Record:
    """A record with its whole environment, without the key under which a journal has it."""
    try:
        columns = json.loads(line)
        columns.pop("key", None)
        columns["environment"] = resolve(columns["environment"], file, source)
    except (ValueError, TypeError, AttributeError, KeyError) as error:
        raise LongcaError(f"{source}: is no record ({error})") from error
    return parse_record(json.dumps(columns), source)
