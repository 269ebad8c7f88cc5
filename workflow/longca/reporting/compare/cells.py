"""The cells of two sides, paired by what was measured: a ratio where both are right on the same mask, else words."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from longca.cases import Case
from longca.errors import LongcaError
from longca.measure.record import Record
from longca.reporting.compare.ratios import Interval, Medians, medians, ratio_of_sums
from longca.reporting.compare.sides import Side
from longca.reporting.words import words

SLOWER, LEVEL, FASTER = "slower", "level", "faster"


@dataclass(frozen=True)
class Cell:
    """A case and its record on either side (None: it has none there); `medians` where there is a ratio."""

    case: Case
    a: Record | None
    b: Record | None
    medians: Medians | None

    @cached_property
    def interval(self) -> Interval | None:
        """The ratio of latencies, B over A, with its confidence interval; None where there is none."""
        return ratio_of_sums([self.medians]) if self.medians else None

    @property
    def verdict(self) -> str:
        """B beside A in a word: slower or faster where the interval says so, else level; or why there is no ratio."""
        interval = self.interval
        if interval is not None:
            return SLOWER if interval.low > 1 else FASTER if interval.high < 1 else LEVEL
        if self.a is None or self.b is None:
            return "only in A" if self.a else "only in B"
        if self.a.status == self.b.status == "ok":
            return "different masks"
        return ", ".join(
            f"{side}: {words(record.status)}"
            for side, record in (("A", self.a), ("B", self.b))
            if record.status != "ok"
        )

    @property
    def is_lost(self) -> bool:
        """Whether A has a number where B tried and has none."""
        return self.a is not None and self.b is not None and self.a.status == "ok" and self.b.status != "ok"

    def is_slower_by(self, percent: float) -> bool:
        """Whether B is slower than A by more than `percent`, the whole interval considered."""
        interval = self.interval
        return interval is not None and interval.low > 1 + percent / 100


def paired(a: Side, b: Side) -> list[Cell]:
    """Every case of either side, in the order of A, then what only B has.

    Devices and versions are no part of a case. Raises LongcaError where no case stands on both.
    """
    if not a.records.keys() & b.records.keys():
        raise LongcaError(
            f"{a.source} and {b.source}: no case stands in both; right: studies with cells in common, kernel, pattern, "
            "length, heads, head_dim, dtype and pass"
        )
    cases = dict.fromkeys([*a.records, *b.records])
    return [_cell(case, a.records.get(case), b.records.get(case)) for case in cases]


def fallen_behind(cells: Sequence[Cell], percent: float) -> list[Cell]:
    """The cells that are slower on B by more than `percent` or have lost their number."""
    return [cell for cell in cells if cell.is_lost or cell.is_slower_by(percent)]


def _cell(case: Case, a: Record | None, b: Record | None) -> Cell:
    found = None
    if a and b and a.samples_ms and b.samples_ms and a.mask_digest == b.mask_digest:
        found = medians(a.samples_ms, b.samples_ms, json.dumps(case.columns(), sort_keys=True))
    return Cell(case, a, b, found)
