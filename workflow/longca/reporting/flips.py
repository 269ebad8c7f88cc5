"""Where the ranking flips: lengths between which the lead passes from one kernel to another, beyond their spread."""

from collections.abc import Sequence
from itertools import pairwise

from longca.reporting.cells import Cell, Place
from longca.reporting.findings import Finding
from longca.reporting.sections import by_setting, setting
from longca.reporting.words import digits


def flips(cells: Sequence[Cell]) -> list[Finding]:
    """A finding a setting: for each pattern the lengths (block-sparse: densities) between which the lead changes.

    Both kernels have a number at both places, and are apart beyond the spread at either.
    """
    findings = []
    for place, group in by_setting(cells):
        subjects: dict[str, dict[Place, dict[str, Cell]]] = {}
        for cell in group:
            if cell.ok:
                rows = subjects.setdefault(cell.place.subject, {})
                rows.setdefault(cell.place, {})[cell.kernel] = cell
        sentences = tuple((subject, said) for subject, rows in subjects.items() for said in _flips_of(rows))
        findings.append(
            Finding(f"Where the ranking flips, {place.pass_}, {setting(place, cells)}", sentences)
        )
    return findings


def _flips_of(rows: dict[Place, dict[str, Cell]]) -> list[str]:
    ordered = [rows[place] for place in sorted(rows, key=_position)]
    return [
        f"{new} overtakes {old} between {_at(before[old].place)} and {_at(after[new].place)}: "
        f"{_beside(before[new], before[old])}, then {_beside(after[new], after[old])} TFLOP/s."
        for before, after in pairwise(ordered)
        if (old := _leader(before)) != (new := _leader(after))
        and new in before
        and old in after
        and before[old].is_ahead_of(before[new])
        and after[new].is_ahead_of(after[old])
    ]


def _leader(row: dict[str, Cell]) -> str:
    return max(row, key=lambda kernel: row[kernel].throughput() or 0.0)


def _beside(one: Cell, other: Cell) -> str:
    return f"{digits(one.throughput() or 0.0)} beside {digits(other.throughput() or 0.0)}"


def _position(place: Place) -> tuple[int, float]:
    return place.seqlen, place.density or 0.0


def _at(place: Place) -> str:
    return f"{place.seqlen} tokens" if place.density is None else f"{place.density:g} density"
