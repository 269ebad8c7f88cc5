"""Findings: sentences computed from cells. Only ok cells rank, as far as their spread tells them apart."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from longca.reporting.cells import Cell, Place
from longca.reporting.sections import by_setting, setting
from longca.reporting.words import NOT_MEASURED, digits, plain, words


@dataclass(frozen=True)
class Finding:
    """Sentences under a heading, each with the pattern or kernel it is about."""

    heading: str
    sentences: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class _Lead:
    """The fastest kernel of a row and the one after it (None: no other is ok)."""

    place: Place
    first: Cell
    second: Cell | None

    @property
    def ratio(self) -> float:
        return _tflops(self.first) / _tflops(self.second) if self.second else 1.0

    @property
    def apart(self) -> bool:
        """Whether the first is ahead of the second beyond the spread."""
        return self.second is None or self.first.is_ahead_of(self.second)

    @property
    def said(self) -> tuple[str, bool, bool]:
        """What two lengths must share to be told in one clause."""
        return self.first.kernel, self.second is None, self.apart


def fastest(cells: Sequence[Cell]) -> list[Finding]:
    """Which kernel is fastest on each pattern, over which lengths (block-sparse: densities), and by how much."""
    findings = []
    for place, group in by_setting(cells):
        subjects: dict[str, list[Cell]] = {}
        for cell in group:
            subjects.setdefault(cell.place.subject, []).append(cell)
        sentences = tuple((subject, _sentence(about)) for subject, about in subjects.items())
        findings.append(Finding(f"Fastest {place.pass_}, {setting(place, cells)}", sentences))
    return findings


def refusals(cells: Sequence[Cell]) -> Finding:
    """Where a kernel has no number, and why: a sentence a kernel, status and reason."""
    places: dict[tuple[str, str, str], list[Place]] = {}
    grid: dict[str, set[Place]] = {}
    for cell in cells:
        grid.setdefault(cell.kernel, set()).add(cell.place)
        for row in cell.rows:
            if row["status"] not in ("ok", NOT_MEASURED):
                places.setdefault((cell.kernel, row["status"], plain(row["reason"] or "")), []).append(
                    cell.place
                )
    sentences = tuple(
        (kernel, f"{words(status)} on {_where(found, grid[kernel])}: {reason}")
        for (kernel, status, reason), found in places.items()
    )
    family = f"{cells[0].place.family} " if cells else ""
    return Finding(f"Where a {family}kernel has no number, and why", sentences)


def _sentence(cells: Sequence[Cell]) -> str:
    rows: dict[Place, list[Cell]] = {}
    for cell in cells:
        rows.setdefault(cell.place, []).append(cell)
    order = sorted(rows, key=lambda place: (place.seqlen, place.density or 0))
    leads = [(place, _lead(place, rows[place])) for place in order]
    runs = [list(run) for _, run in groupby(leads, key=lambda item: item[1].said if item[1] else None)]
    return "; ".join(_clause(run, whole=len(leads)) for run in runs) + "."


def _lead(place: Place, cells: Iterable[Cell]) -> _Lead | None:
    ranked = sorted((cell for cell in cells if cell.ok), key=_tflops, reverse=True)
    return _Lead(place, ranked[0], ranked[1] if len(ranked) > 1 else None) if ranked else None


def _clause(run: list[tuple[Place, _Lead | None]], whole: int) -> str:
    where = _stretch([place for place, _ in run], whole)
    leads = [lead for _, lead in run if lead]
    if not leads:
        return f"no kernel has a number {where}"
    lead = leads[0]
    rate = _span([digits(_tflops(one.first)) for one in leads]) + f" TFLOP/s{_flags(leads)}"
    if lead.second is None:
        return f"{lead.first.kernel} {where}, the only one with a number ({rate})"
    seconds = " or ".join(dict.fromkeys(one.second.kernel for one in leads if one.second))
    if not lead.apart:
        return f"{lead.first.kernel} {where}, level with {seconds} within the spread ({rate})"
    ratio = _span([f"{one.ratio:.2f}" for one in leads])
    return f"{lead.first.kernel} {where}, {ratio} times as fast as {seconds} ({rate})"


def _flags(leads: list[_Lead]) -> str:
    """The flags that stand on any number a clause compares."""
    cells = [cell for lead in leads for cell in (lead.first, lead.second) if cell]
    flags = dict.fromkeys(flag for cell in cells for flag in cell.flags)
    return f"; flagged {', '.join(map(words, flags))}" if flags else ""


def _stretch(places: list[Place], whole: int) -> str:
    """The lengths or densities of one clause, out of `whole` that the sentence is about."""
    over_length = places[0].block is None
    if len(places) == whole > 1:
        return "at every length" if over_length else "at every density"
    ends = [str(place.seqlen) if over_length else f"{place.density:g}" for place in (places[0], places[-1])]
    said = f"at {ends[0]}" if len(places) == 1 else f"from {ends[0]} to {ends[1]}"
    return f"{said} tokens" if over_length else f"{said} density"


def _span(texts: list[str]) -> str:
    low, high = min(texts, key=float), max(texts, key=float)
    return low if low == high else f"{low} to {high}"


def _where(places: Sequence[Place], grid: set[Place]) -> str:
    """Patterns, lengths and passes of `places`, as short as the grid of the kernel allows."""
    patterns = dict.fromkeys(place.pattern for place in places)
    every = {place.pattern for place in grid} == set(patterns) and len(patterns) > 1
    said = "every pattern" if every else ", ".join(patterns)
    here = set(places)
    lengths = sorted({place.seqlen for place in here})
    if lengths != sorted({place.seqlen for place in grid if place.pattern in patterns}):
        said += f" at {', '.join(map(str, lengths))} tokens"
    passes = {place.pass_ for place in here}
    return said if passes == {place.pass_ for place in grid} else f"{said} ({', '.join(sorted(passes))})"


def _tflops(cell: Cell) -> float:
    return cell.throughput() or 0.0
