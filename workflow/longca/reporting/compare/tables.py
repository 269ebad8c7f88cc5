"""A comparison as tables: what differs, the summary, every cell; for reading and as CSV."""

import csv
import io
import statistics
from collections.abc import Sequence
from typing import Any

from longca.cases import Case
from longca.reporting.case_columns import case_columns, varying
from longca.reporting.compare.cells import FASTER, LEVEL, SLOWER, Cell
from longca.reporting.compare.ratios import Interval, ratio_of_sums
from longca.reporting.compare.sides import Side
from longca.reporting.sections import FLAG_MARK, Section
from longca.reporting.words import digits, plain

# What every table and figure has a column or an axis for.
_NAMED = ("family", "kernel", "mechanism", "pass", "pattern")
_RATIO = ("ratio", "ratio_low", "ratio_high")
INTERVALS = (
    "Ratios are latencies of B over A: above 1, B is slower. In brackets 95 % confidence intervals from the samples of "
    "one run on each side; what moves a whole run, as clocks and heat do, is not in them."
)


def sections(a: Side, b: Side, cells: Sequence[Cell], room: int | None = None) -> list[Section]:
    """The comparison for reading. room: how many cells to show, the slowest and the fastest of B; None: all."""
    having = [cell for cell in cells if cell.interval]
    without = [cell for cell in cells if not cell.interval]
    title = "Every cell with a ratio"
    if room is not None and len(having) > room:
        half = room // 2
        title = f"Of {len(having)} cells with a ratio the {half} slowest and the {half} fastest"
        ordered = sorted(having, key=_ratio, reverse=True)
        having = [*ordered[:half], *ordered[-half:]]
    parts = [_differences(a, b), _summary(cells)]
    parts += [_cells_section(title, having)] if having else []
    return [*parts, _without_ratio(without)] if without else parts


def sentences(cells: Sequence[Cell]) -> list[str]:
    """A line a cell: what B is beside A there."""
    said = []
    for cell, place in zip(cells, places(cells), strict=True):
        found = f"B is {cell.verdict}, {_interval_text(cell.interval)}" if cell.interval else cell.verdict
        said.append(f"{subject(cell.case)} {cell.case.pass_}, {cell.case.pattern}, {place}: {found}")
    return said


def csv_text(cells: Sequence[Cell]) -> str:
    """Every cell as a line: the columns of its case, both sides' status and median, ratio, interval, verdict."""
    rows = [_csv_row(cell) for cell in cells]
    text = io.StringIO()
    names = dict.fromkeys(name for row in rows for name in row)
    writer = csv.DictWriter(text, list(names), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def places(cells: Sequence[Cell]) -> list[str]:
    """Where each cell stands besides kernel, pass and pattern: its length, and what else varies among them."""
    columns = [case_columns(cell.case) for cell in cells]
    telling = dict.fromkeys(["seqlen", *varying(columns)])
    names = [name for name in telling if name not in _NAMED]
    return [
        ", ".join(_said(name, row[name]) for name in names if row.get(name) is not None) for row in columns
    ]


def subject(case: Case) -> str:
    """What is compared: a kernel, or a mechanism over one."""
    return f"{case.arrangement.mechanism} over {case.kernel}" if case.arrangement else case.kernel


def _said(name: str, value: Any) -> str:
    if name == "seqlen":
        return f"{value} tokens"
    return str(value) if isinstance(value, str) else f"{name} {value}"


def _differences(a: Side, b: Side) -> Section:
    told = a.environment(), b.environment()
    names = [n for n in dict.fromkeys([*told[0], *told[1]]) if told[0].get(n) != told[1].get(n)]
    rows = tuple((name, *(side.get(name, "–") for side in told)) for name in names)
    title = f"A is {plain(str(a.source))}, B is {plain(str(b.source))}"
    note = "" if rows else "Their environments are the same."
    return Section(title, ("What differs", "A", "B"), rows, numeric=False, note=note)


def _summary(cells: Sequence[Cell]) -> Section:
    """A row a kernel and pass, and one of all: total time of B over A, the median cell, how many are slower."""
    groups: dict[tuple[str, ...], list[Cell]] = {}
    for cell in cells:
        groups.setdefault((cell.case.family, subject(cell.case), cell.case.pass_), []).append(cell)
    rows = [_summary_row(names, group) for names, group in groups.items()]
    if len(groups) > 1:
        rows.append(_summary_row(("all", "", ""), cells))
    headers = (
        "Family",
        "Kernel",
        "Pass",
        "Time of all cells, B / A",
        "Median cell",
        "Slower",
        "Level",
        "Faster",
        "No ratio",
    )
    return Section("B beside A, in sum", headers, tuple(rows), numeric=False, note=INTERVALS)


def _summary_row(names: tuple[str, ...], cells: Sequence[Cell]) -> tuple[str, ...]:
    ratios = [cell.interval.ratio for cell in cells if cell.interval]
    sums = [cell.medians for cell in cells if cell.medians]
    counts = [sum(cell.verdict == verdict for cell in cells) for verdict in (SLOWER, LEVEL, FASTER)]
    said = (_interval_text(ratio_of_sums(sums)), f"{statistics.median(ratios):.3f}") if ratios else ("–", "–")
    return (*names, *said, *map(str, counts), str(len(cells) - len(ratios)))


def _cells_section(title: str, cells: Sequence[Cell]) -> Section:
    """A row a cell: median latencies, ratio with its interval, and what it comes to."""
    headers = ("Kernel", "Pass", "Pattern", "Where", "A (ms)", "B (ms)", "B / A", "B is")
    rows = tuple(_cell_row(cell, where) for cell, where in zip(cells, places(cells), strict=True))
    flagged = any(FLAG_MARK in row[4] + row[5] for row in rows)
    note = f"{FLAG_MARK} flagged: a doubt about the number, named in its record." if flagged else ""
    return Section(title, headers, rows, numeric=False, note=note)


def _cell_row(cell: Cell, where: str) -> tuple[str, ...]:
    assert cell.interval is not None
    assert cell.medians is not None
    latencies = [
        f"{digits(ms)} {FLAG_MARK}" if record and record.flags else digits(ms)
        for ms, record in ((cell.medians.a, cell.a), (cell.medians.b, cell.b))
    ]
    place = (subject(cell.case), cell.case.pass_, cell.case.pattern, where)
    return (*place, *latencies, _interval_text(cell.interval), cell.verdict)


def _interval_text(interval: Interval) -> str:
    """A ratio with its interval in brackets."""
    return f"{interval.ratio:.3f} [{interval.low:.3f}, {interval.high:.3f}]"


def _without_ratio(cells: Sequence[Cell]) -> Section:
    headers = ("Kernel", "Pass", "Pattern", "Where", "Why not")
    rows = tuple(
        (subject(cell.case), cell.case.pass_, cell.case.pattern, where, cell.verdict)
        for cell, where in zip(cells, places(cells), strict=True)
    )
    return Section("Cells without a ratio", headers, rows, numeric=False)


def _csv_row(cell: Cell) -> dict[str, Any]:
    sides = {"a": cell.a, "b": cell.b}
    row: dict[str, Any] = case_columns(cell.case)
    row |= {f"status_{side}": record and record.status for side, record in sides.items()}
    row |= {f"device_{side}": record and record.environment.get("device") for side, record in sides.items()}
    row |= {f"flags_{side}": record and " ".join(record.flags) for side, record in sides.items()}
    row |= {f"latency_ms_{side}": cell.medians and _short(getattr(cell.medians, side)) for side in sides}
    row |= dict(zip(_RATIO, map(_short, cell.interval) if cell.interval else (None,) * 3, strict=True))
    return row | {"verdict": cell.verdict}


def _ratio(cell: Cell) -> float:
    return cell.interval.ratio if cell.interval else 1.0


def _short(value: float) -> str:
    return f"{value:.6g}"
