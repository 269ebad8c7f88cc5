"""Provenance: which machines, versions, revisions and kernel sources the records of a study come from."""

from collections.abc import Sequence
from typing import Any

from longca.reporting.cells import device_of
from longca.reporting.long import Row
from longca.reporting.words import NOT_MEASURED, plain, words

_PREFIX = "environment_"
_MANY = 4
# Units that end a column's name, as they are written.
_UNITS = {"mhz": "MHz", "w": "W", "c": "°C", "bytes": "bytes"}


def machines(rows: Sequence[Row]) -> dict[str, dict[str, str]]:
    """For each device, what its records say of the environment; a range or a count where they differ."""
    measured = [row for row in rows if row["status"] != NOT_MEASURED]
    names = [name for name in dict.fromkeys(n for row in measured for n in row) if name.startswith(_PREFIX)]
    told = {}
    for device in dict.fromkeys(map(device_of, measured)):
        here = [row for row in measured if device_of(row) == device]
        values = {name: [row[name] for row in here if row.get(name) is not None] for name in names}
        told[device] = {
            _label(name.removeprefix(_PREFIX)): _summary(found)
            for name, found in values.items()
            if found and name != "environment_device"
        }
        times = sorted(row["measured_at"] for row in here)
        told[device]["measured"] = times[0] if times[0] == times[-1] else f"{times[0]} to {times[-1]}"
    return told


def fingerprints(rows: Sequence[Row]) -> list[tuple[str, str, str]]:
    """(family, kernel, fingerprint) of every source that was measured."""
    return sorted({(row["family"], row["kernel"], row["fingerprint"]) for row in rows if row["fingerprint"]})


def _label(name: str) -> str:
    """A column's name as words, its unit in parentheses."""
    quantity, _, unit = name.rpartition("_")
    return f"{words(quantity)} ({_UNITS[unit]})" if quantity and unit in _UNITS else words(name)


def _summary(values: list[Any]) -> str:
    different = list(dict.fromkeys(values))
    if len(different) <= _MANY:
        return ", ".join(plain(str(value), 80) for value in different)
    if all(isinstance(value, int | float) for value in different):
        return f"{min(different):g} to {max(different):g}"
    return f"{len(different)} different: {plain(str(min(different)), 80)} to {plain(str(max(different)), 80)}"
