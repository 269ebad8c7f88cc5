"""Pieces of Markdown that all derived pages are made of."""

import re
from collections.abc import Container, Iterable, Sequence
from types import ModuleType

MARK = "<!-- `longca pages` writes this page; what it says stands beside the code and in results/h200. -->\n"


def table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A pipe table of Markdown texts; line breaks and pipes in them are taken care of."""
    lines = [headers, ["---"] * len(headers), *rows]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines) + "\n"


def said(module: ModuleType) -> str:
    """What a module's docstring says after its first line, empty for nothing; papers become links."""
    body = (module.__doc__ or "").partition("\n")[2].strip("\n")
    return re.sub(r"arXiv (\d{4}\.\d{5})", r"[arXiv \1](https://arxiv.org/abs/\1)", body)


def with_links(text: str, pages: Container[str]) -> str:
    """The text with every `name` that is one of `pages`, all of one folder, as a link to it."""
    return re.sub(
        r"`(\w+)`", lambda found: f"[{found[0]}]({found[1]}.md)" if found[1] in pages else found[0], text
    )


def source_link(module: str) -> str:
    """A link from a page of docs/kernels or docs/mechanisms to the source of a module of this package."""
    source = f"workflow/{module.replace('.', '/')}.py"
    return f"[{source}](../../{source})"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
