"""Every relative link of every page leads somewhere."""

import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
# Pages that people wrote: hidden folders are environments and caches, the folders in results/ are what studies left.
PAGES = sorted(REPOSITORY.glob("*.md")) + [
    page
    for folder in sorted(REPOSITORY.glob("[!.]*/"))
    for page in sorted(folder.glob("*.md" if folder.name == "results" else "**/*.md"))
]
LINK = re.compile(r"\]\(<?([^)>\s]+)>?(?:\s+\"[^\"]*\")?\)")
OUTWARD = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives a page's headings."""
    headings = re.findall(r"^#+ +(.*?) *$", page.read_text(encoding="utf-8"), re.MULTILINE)
    plain = (re.sub(r"\]\([^)]*\)|[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.replace(" ", "-") for heading in plain}


def test_the_pages_are_found() -> None:
    names = {page.relative_to(REPOSITORY).as_posix() for page in PAGES}
    assert {
        "README.md",
        "CONTRIBUTING.md",
        "config/README.md",
        "docs/method.md",
        "results/README.md",
    } <= names


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(REPOSITORY).as_posix())
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    # Code is no prose: what looks like a link there is none.
    text = re.sub(
        r"^```.*?^```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
    )
    dead = []
    for target in LINK.findall(text):
        if OUTWARD.match(target):
            continue
        path, _, anchor = target.partition("#")
        file = page.parent / path if path else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            dead.append(target)
    assert dead == []
