"""Sections: a table as a person reads it, a section a pass, the same for Markdown, LaTeX and HTML."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from longca.reporting.cells import Cell, Place
from longca.reporting.words import NOT_IN_GRID, digits, plain

FLAG_MARK = "†"


@dataclass(frozen=True)
class Section:
    """One table for reading, all of it texts.

    title: what is shown, with its unit. best: (row, column) of the cells shown bold. numeric: whether all
    columns but the first hold numbers, and are set to the right. note: what stands below, empty for nothing.
    keys: how many of the first columns say what a row is of; where a page is too narrow they stand before each part.
    """

    title: str
    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    best: frozenset[tuple[int, int]] = frozenset()
    numeric: bool = True
    note: str = ""
    keys: int = 1


def throughput_sections(cells: Sequence[Cell]) -> list[Section]:
    """TFLOP/s by pattern and length (block, density) x kernel; the best of a row bold, statuses as words."""
    return [
        kernel_section(
            f"{_pass_word(place)} throughput in {_unit(place)}, {setting(place, cells)}",
            group,
            lambda cell: cell.throughput(),
            best=max,
            note=flag_note(group),
        )
        for place, group in by_setting(cells)
    ]


def kernel_section(
    title: str,
    cells: Sequence[Cell],
    value: Callable[[Cell], float | None],
    best: Callable[[Iterable[float]], float] | None,
    note: str = "",
) -> Section:
    """Rows are places, columns kernels; a cell shows its `value`, or where that is None its statuses."""
    kernels = list(dict.fromkeys(cell.kernel for cell in cells))
    table: dict[Place, dict[str, Cell]] = {}
    for cell in cells:
        table.setdefault(cell.place, {})[cell.kernel] = cell
    block_sparse = any(place.block is not None for place in table)
    on_ranks = any(place.family == "context_parallel" for place in table)
    key_headers = (
        "Pattern",
        *(("Ranks",) if on_ranks else ()),
        "Length (tokens)",
        *(("Block (tokens)", "Density (nominal)") if block_sparse else ()),
    )
    rows, bold = [], set()
    for index, place in enumerate(_by_pattern(table)):
        numbers = {kernel: value(cell) for kernel, cell in table[place].items()}
        present = [number for number in numbers.values() if number is not None]
        if best and present:
            # Of two equal ones both are the best.
            winners = [kernel for kernel, number in numbers.items() if number == best(present)]
            bold |= {(index, len(key_headers) + kernels.index(kernel)) for kernel in winners}
        keys: tuple[str, ...] = (place.pattern, *((str(place.ranks),) if on_ranks else ()), str(place.seqlen))
        keys += (str(place.block), f"{place.density:g}") if block_sparse else ()
        rows.append((*keys, *(_text(table[place].get(kernel), numbers.get(kernel)) for kernel in kernels)))
    return Section(
        title, (*key_headers, *kernels), tuple(rows), frozenset(bold), note=note, keys=len(key_headers)
    )


def by_setting(cells: Sequence[Cell]) -> list[tuple[Place, list[Cell]]]:
    """Cells that differ in pattern, length and kernel alone, with one of their places; forward first."""
    groups: dict[tuple[Any, ...], list[Cell]] = {}
    for cell in cells:
        groups.setdefault(cell.place[:8], []).append(cell)
    ordered = sorted(groups.values(), key=lambda group: group[0].place.pass_ != "forward")
    return [(group[0].place, group) for group in ordered]


def setting(place: Place, among: Iterable[Cell]) -> str:
    """What all cells of a section share, for its title; the dataset `auto` only beside others."""
    several = any(cell.place.dataset != place.dataset for cell in among if cell.place.family == place.family)
    documents = f", documents of {place.dataset}" if several or place.dataset != "auto" else ""
    what = "context parallelism" if place.family == "context_parallel" else f"{place.family} kernels"
    shape = f"{what}, heads {place.heads}, head dimension {place.head_dim}, {place.dtype}"
    return f"{shape}, {plain(place.device)}{documents}"


def flag_note(cells: Sequence[Cell]) -> str:
    """What the mark beside a number of these cells means, empty where none has it."""
    flags = dict.fromkeys(flag for cell in cells if cell.ok for flag in cell.flags)
    return f"{FLAG_MARK} flagged: {', '.join(flags)}." if flags else ""


def _by_pattern(places: Iterable[Place]) -> list[Place]:
    """Places pattern by pattern in the order of the grid, each by rising length."""
    listed = list(places)
    order = list(dict.fromkeys(place.pattern for place in listed))
    return sorted(
        listed, key=lambda p: (order.index(p.pattern), p.ranks, p.seqlen, p.block or 0, p.density or 0)
    )


def _text(cell: Cell | None, number: float | None) -> str:
    if cell is None:
        return NOT_IN_GRID
    if number is None:
        return cell.words
    return f"{digits(number)} {FLAG_MARK}" if cell.flags else digits(number)


def _pass_word(place: Place) -> str:
    return place.pass_.capitalize()


def _unit(place: Place) -> str:
    return "TFLOP/s a rank" if place.family == "context_parallel" else "TFLOP/s"
