"""Findings of context parallel: which mechanism carries a pattern furthest, and what its communication costs there."""

from collections.abc import Iterable, Mapping, Sequence

from longca.reporting.cells import Cell, cells_of
from longca.reporting.findings import Finding, refusals
from longca.reporting.long import Row
from longca.reporting.mechanisms import as_mechanisms, efficiency, is_alone, local_kernel, most
from longca.reporting.sections import by_setting, setting
from longca.reporting.words import digits


def mechanism_findings(rows: Sequence[Row]) -> list[Finding]:
    """The fastest mechanism of each pattern by ranks and tokens a rank, a heading a pass; then refusals."""
    cells = cells_of(as_mechanisms(rows))
    found = []
    for place, group in by_setting(cells):
        subjects: dict[str, list[Cell]] = {}
        for cell in group:
            tokens = cell.place.seqlen // cell.place.ranks
            subjects.setdefault(f"{cell.place.pattern}, {tokens} tokens a rank", []).append(cell)
        sentences = tuple((subject, _sentence(about)) for subject, about in subjects.items())
        found.append(Finding(f"Fastest {place.pass_} over ranks, {setting(place, cells)}", sentences))
    return [*found, refusals(cells)]


def _sentence(cells: Sequence[Cell]) -> str:
    alone = {local_kernel(cell): cell.throughput() for cell in cells if is_alone(cell)}
    by_ranks: dict[int, list[Cell]] = {}
    for cell in cells:
        by_ranks.setdefault(cell.place.ranks, []).append(cell)
    several = {ranks: group for ranks, group in sorted(by_ranks.items()) if ranks > 1}
    return "; ".join(_clause(ranks, group, alone) for ranks, group in several.items()) + "."


def _clause(ranks: int, cells: Iterable[Cell], alone: Mapping[str, float | None]) -> str:
    # A degenerate topology is another mechanism, which stands there by its own name.
    own = [cell for cell in cells if cell.ok and "degenerate" not in cell.flags]
    ranked = sorted(own, key=lambda cell: -(cell.throughput() or 0.0))
    if not ranked:
        return f"on {ranks} ranks no mechanism has a number"
    first = ranked[0]
    # Both are medians: a share of a little over the whole is their noise.
    rate, share = first.throughput() or 0.0, min(efficiency(first) or 0.0, 1.0)
    said = f"on {ranks} ranks {first.kernel}, {digits(rate)} TFLOP/s a rank"
    if one := alone.get(local_kernel(first)):
        said += f" ({rate / one:.2f} of one rank alone)"
    said += f", computing {share:.0%} of its time"
    imbalance = most("imbalance")(first) or 1.0
    said += f", imbalance {imbalance:.2f}" if imbalance > 1.03 else ""
    flags = dict.fromkeys(flag for cell in ranked[:2] for flag in cell.flags)
    said += f" (flagged {', '.join(flags)})" if flags else ""
    if len(ranked) == 1:
        return f"{said}, the only one with a number"
    second = ranked[1]
    if not first.is_ahead_of(second):
        return f"{said}, level with {second.kernel} within the spread"
    return f"{said}, {rate / (second.throughput() or rate):.2f} times as fast as {second.kernel}"
