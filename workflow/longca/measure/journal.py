"""Journal: what a series has measured so far, a line a case. A killed job loses the case it was at and no other."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from longca.cases import Case
from longca.errors import LongcaError
from longca.files import write_atomically
from longca.measure.protocol import PROTOCOL_VERSION
from longca.measure.record import Record, parse_record, read_keyed_records


def case_key(
    case: dict[str, Any], mask_digest: str, fingerprint: str, protocol: dict[str, Any], device: str
) -> str:
    """The identity under which a measurement holds: the same key means that measuring again would repeat it."""
    parts = [case, mask_digest, fingerprint, protocol | {"version": PROTOCOL_VERSION}, device]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:24]


_REMOVE = "right: remove that line, its case is measured again"


class Journal:
    """The lines of one journal by key, the last of a key counting, and the file open to grow by whole lines."""

    def __init__(self, path: Path) -> None:
        """Read what is there. A torn last line is cut off; any other line that cannot be read raises LongcaError."""
        self.path = path
        self._records: dict[str, Record] = {}
        self._lines: dict[str, int] = {}  # where the record of a key stands, from 1
        self._cases: set[Case] = set()
        path.parent.mkdir(parents=True, exist_ok=True)
        content = path.read_bytes() if path.exists() else b""
        whole, newline, torn = content.rpartition(b"\n")
        for number, line in enumerate(whole.split(b"\n") if newline else [], 1):
            key, record = _parse(line, f"{path}:{number}")
            self._lines[key] = number
            self._add(key, record)
        if torn:
            os.truncate(path, len(content) - len(torn))

    def keys(self) -> dict[str, Record]:
        """Every key with its record."""
        return dict(self._records)

    def knows(self, case: Case) -> bool:
        """Whether any line is of this case, under whatever key."""
        return case in self._cases

    def get(self, key: str, sampling: dict[str, Any]) -> Record | None:
        """The record measured under `key`, which `sampling` is part of (Protocol.sampling), or None.

        Raises LongcaError where the line is not of what its key was made of.
        """
        record = self._records.get(key)
        if record is None:
            return None
        case, device = record.case.columns(), record.environment.get("device")
        if case_key(case, record.mask_digest, record.fingerprint, sampling, str(device)) != key:
            place = f"{self.path}:{self._lines[key]}" if key in self._lines else str(self.path)
            raise LongcaError(
                f"{place}: key: {key} was made of another case than the line's {_said(record)}, or of another "
                f"mask_digest, fingerprint or device; {_REMOVE}"
            )
        return record

    def append(self, key: str, record: Record) -> None:
        """Add a record; it is on disk when this returns."""
        with self.path.open("ab") as file:
            file.write(_line(key, record).encode())
            file.flush()
            os.fsync(file.fileno())
        self._add(key, record)

    def _add(self, key: str, record: Record) -> None:
        self._records[key] = record
        self._cases.add(record.case)


def thaw_journal(path: Path, records_file: Path) -> None:
    """Make a journal that is not there from records that carry their keys: those of a frozen study."""
    if path.exists() or not records_file.exists():
        return
    keyed = [(key, record) for key, record in read_keyed_records(records_file) if key is not None]
    if keyed:
        write_atomically(path, "".join(_line(key, record) for key, record in keyed))


def _line(key: str, record: Record) -> str:
    return json.dumps({"key": key} | json.loads(record.to_line())) + "\n"


def _said(record: Record) -> str:
    return ", ".join(f"{name} {value}" for name, value in record.case.columns().items() if value is not None)


def _parse(line: bytes, source: str) -> tuple[str, Record]:
    try:
        columns = json.loads(line)
        key = columns.pop("key")
        if not isinstance(key, str):
            raise TypeError(f"key is {key!r}, no text")
    except (ValueError, TypeError, AttributeError, KeyError) as error:
        raise LongcaError(f"{source}: is no journal line ({error}); {_REMOVE}") from error
    return key, parse_record(json.dumps(columns), source)
