"""Sections on a terminal as tables of its width; in a pipe or a file as plain text, each row a line."""

from collections.abc import Iterable

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text
from tabulate import tabulate

from longca.reporting.sections import Section


def print_sections(sections: Iterable[Section], console: Console | None = None) -> None:
    """Print each section's title, rows and note to `console`, stdout where there is none."""
    console = console or Console()
    for number, section in enumerate(sections):
        if number:
            console.print()
        if console.is_terminal:
            _print_table(section, console)
        else:
            console.file.write(_plain(section))


def _print_table(section: Section, console: Console) -> None:
    console.print(Text(section.title, style="bold"))
    if section.rows:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
        for index, header in enumerate(section.headers):
            table.add_column(Text(header), justify="right" if section.numeric and index else "left")
        for index, row in enumerate(section.rows):
            best = ["bold" if (index, column) in section.best else "" for column in range(len(row))]
            table.add_row(*(Text(cell, style=style) for cell, style in zip(row, best, strict=True)))
        console.print(table)
    if section.note:
        console.print(Text(section.note))


def _plain(section: Section) -> str:
    parts = [section.title]
    if section.rows:
        aligned = ["left", *["right" if section.numeric else "left"] * (len(section.headers) - 1)]
        rows = [section.headers, *section.rows]
        parts.append(tabulate(rows, tablefmt="plain", colalign=aligned, disable_numparse=True))
    return "\n".join([*parts, section.note] if section.note else parts) + "\n"
