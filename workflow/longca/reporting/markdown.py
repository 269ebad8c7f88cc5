"""Sections as Markdown."""

import re
from collections.abc import Sequence

from tabulate import tabulate

from longca.reporting.sections import Section


def markdown(sections: Sequence[Section]) -> str:
    """One heading and one pipe table a section; cells escaped, the best of a row bold."""
    return "\n".join(_section(section) for section in sections)


def _section(section: Section) -> str:
    parts = [f"## {escape(section.title)}", ""]
    if section.rows:
        aligned = ["left", *["right" if section.numeric else "left"] * (len(section.headers) - 1)]
        table = tabulate(
            [_row(section, index) for index in range(len(section.rows))],
            headers=[escape(header) for header in section.headers],
            tablefmt="pipe",
            colalign=aligned,
            disable_numparse=True,
        )
        parts += [table, ""]
    if section.note:
        parts += [escape(section.note), ""]
    return "\n".join(parts)


def _row(section: Section, index: int) -> list[str]:
    cells = [escape(text) for text in section.rows[index]]
    return [f"**{text}**" if (index, column) in section.best else text for column, text in enumerate(cells)]


def escape(text: str) -> str:
    """Escape what Markdown or HTML would read as its own; an underscore inside a word is none."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\|*`\[\]])", r"\\\1", re.sub(r"(?<!\w)_|_(?!\w)", r"\\_", text))
