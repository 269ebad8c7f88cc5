"""What the reference study measured of a kernel: forward and backward in one cell, words where there is no number."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from longca.kernels.interface import Support
from longca.reporting.cells import Cell, Place, cells_of
from longca.reporting.long import Row, read_rows
from longca.reporting.markdown import escape
from longca.reporting.pages.text import table
from longca.reporting.sections import FLAG_MARK, flag_note, setting
from longca.reporting.words import digits, plain

NOT_MEASURED = "Not measured in [results/h200](../../results/h200).\n"
Passes = dict[str, Cell]
"""The cells of one place, by pass."""


@dataclass(frozen=True)
class _Axes:
    """What a table's rows and columns are of, for the cells of one setting."""

    headers: tuple[str, ...]
    row: Callable[[Place], tuple[str, ...]]
    across: str
    column: Callable[[Place], float]


_DENSE = _Axes(("pattern",), lambda place: (place.pattern,), "tokens", lambda place: place.seqlen)
_SPARSE = _Axes(
    ("pattern", "block", "tokens"),
    lambda place: (place.pattern, str(place.block), str(place.seqlen)),
    "density",
    lambda place: place.density or 0,
)


def rows_of(results: Path, name: str) -> list[Row]:
    """The long rows of a table of a study; none where it has no such table."""
    file = results / "tables" / f"{name}.parquet"
    return read_rows(file) if file.exists() else []


def throughput(kernel: str, support: Support, rows: Sequence[Row]) -> str:
    """TFLOP/s of a kernel of one device, a table for each setting of the study; empty where it has none.

    Patterns and passes that the kernel declares it does not compute are left out.
    """
    computed = {name for names in support.passes.values() for name in names}
    cells = [
        cell
        for cell in cells_of([row for row in rows if row["kernel"] == kernel])
        if cell.place.pattern in support.patterns and cell.place.pass_ in computed
    ]
    return "\n".join(text for group in settings_of(cells) for text in _in_setting(group, cells))


def settings_of(cells: Iterable[Cell]) -> list[list[Cell]]:
    """Cells of one device, dataset, heads, head dimension and dtype together, both passes."""
    groups: dict[tuple[object, ...], list[Cell]] = {}
    for cell in cells:
        groups.setdefault(cell.place[:7], []).append(cell)
    return list(groups.values())


def in_one_cell(passes: Passes, value: Callable[[Cell], float | None]) -> str:
    """`forward/backward` of one place; words stand once where they are the same."""
    texts = [_text(cell, value(cell)) for cell in passes.values()]
    return "/".join(
        texts if any(value(cell) is not None for cell in passes.values()) else dict.fromkeys(texts)
    )


def _in_setting(cells: Sequence[Cell], among: Sequence[Cell]) -> Iterator[str]:
    axes = _DENSE if cells[0].place.block is None else _SPARSE
    found: dict[tuple[str, ...], dict[float, Passes]] = {}
    for cell in cells:
        columns = found.setdefault(axes.row(cell.place), {})
        columns.setdefault(axes.column(cell.place), {})[cell.place.pass_] = cell
    shown = {row: columns for row, columns in found.items() if any(cell.ok for cell in _cells(columns))}
    passes = "/".join(dict.fromkeys(cell.place.pass_ for cell in cells))
    yield f"TFLOP/s {passes} by {axes.across}; {escape(setting(cells[0].place, among))}.\n"
    if shown:
        yield _table(axes, shown)
    every = [cell for columns in found.values() for cell in _cells(columns)]
    if flag_note(every):
        yield f"{flag_note(every)}\n"
    yield from _reasons(every)


def _table(axes: _Axes, rows: Mapping[tuple[str, ...], Mapping[float, Passes]]) -> str:
    across = sorted({column for columns in rows.values() for column in columns})
    lines = [
        (*row, *(in_one_cell(columns.get(column, {}), Cell.throughput) for column in across))
        for row, columns in rows.items()
    ]
    return table((*axes.headers, *(f"{column:.10g}" for column in across)), lines)


def _reasons(cells: Sequence[Cell]) -> Iterator[str]:
    """A line for each status without a number: the patterns (and blocks) it is of, and the reason most often given."""
    without: dict[str, list[Cell]] = {}
    for cell in cells:
        if not cell.ok:
            without.setdefault(cell.words, []).append(cell)
    everywhere = set(map(_concerned, cells))
    for words, group in without.items():
        where = dict.fromkeys(map(_concerned, group))
        place = ", ".join(where) if set(where) < everywhere else "every pattern"
        said = Counter(plain(reason, 120) for cell in group for reason in cell.reasons).most_common(1)
        yield f"{words}, {place}" + "".join(f": {escape(reason)}" for reason, _ in said) + "\n"


def _concerned(cell: Cell) -> str:
    blocks = f" in blocks of {cell.place.block}" if cell.place.block else ""
    return f"`{cell.place.pattern}`{blocks}"


def _cells(columns: Mapping[float, Passes]) -> list[Cell]:
    return [cell for passes in columns.values() for cell in passes.values()]


def _text(cell: Cell, number: float | None) -> str:
    if number is None:
        return cell.words
    return f"{digits(number)} {FLAG_MARK}" if cell.flags else digits(number)
