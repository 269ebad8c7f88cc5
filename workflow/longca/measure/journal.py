"""Journal: what a series has measured so far, a line a case. A killed job loses the case it was at and no other."""

import hashlib
import json
import os
from pathlib import Path
from typing import Any

from longca.errors import LongcaError
from longca.measure.protocol import PROTOCOL_VERSION
from longca.measure.record import Record, parse_record


def case_key(
    case: dict[str, Any], mask_digest: str, fingerprint: str, protocol: dict[str, Any], device: str
) -> str:
    """The identity under which a measurement holds: the same key means that measuring again would repeat it."""
    parts = [case, mask_digest, fingerprint, protocol | {"version": PROTOCOL_VERSION}, device]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:24]


class Journal:
    """The lines of one journal by key, the last of a key counting, and the file open to grow by whole lines."""

    def __init__(self, path: Path) -> None:
        """Read what is there. A torn last line is cut off; any other line that cannot be read raises LongcaError."""
        self.path = path
        self._records: dict[str, Record] = {}
        path.parent.mkdir(parents=True, exist_ok=True)
        content = path.read_bytes() if path.exists() else b""
        whole, newline, torn = content.rpartition(b"\n")
        for number, line in enumerate(whole.split(b"\n") if newline else [], 1):
            key, record = _parse(line, f"{path}:{number}")
            self._records[key] = record
        if torn:
            os.truncate(path, len(content) - len(torn))

    def get(self, key: str) -> Record | None:
        """The record measured under `key`, or None."""
        return self._records.get(key)

    def append(self, key: str, record: Record) -> None:
        """Add a record; it is on disk when this returns."""
        line = json.dumps({"key": key} | json.loads(record.to_line())) + "\n"
        with self.path.open("ab") as file:
            file.write(line.encode())
            file.flush()
            os.fsync(file.fileno())
        self._records[key] = record


def _parse(line: bytes, source: str) -> tuple[str, Record]:
    try:
        columns = json.loads(line)
        key = columns.pop("key")
    except (ValueError, TypeError, AttributeError, KeyError) as error:
        fault = f"{source}: is no journal line ({error})"
        raise LongcaError(f"{fault}; right: remove that line, its case is measured again") from error
    return key, parse_record(json.dumps(columns), source)
