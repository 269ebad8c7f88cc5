"""The files that a corpus's globs and folders name."""

import glob
from pathlib import Path

from longca.data.layouts import RECORD_SUFFIXES, TEXT_SUFFIXES, Layout
from longca.errors import LongcaError

ARCHIVE_SUFFIXES = (".gz", ".zst")


def container_suffix(path: Path) -> str:
    """The suffix that tells a file's container, in lower case: .jsonl of a.jsonl.zst."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in ARCHIVE_SUFFIXES:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


def expand_files(patterns: list[str], layout: Layout) -> list[Path]:
    """The files that globs and folders name, sorted, each once; a folder stands for `layout`'s kinds of file.

    Raises LongcaError for a pattern without a file, or a file of a kind that cannot be read.
    """
    found: dict[Path, Path] = {}
    for pattern in patterns:
        expanded = Path(pattern).expanduser()
        # Path.glob takes no pattern that starts at the root.
        globbed = map(Path, glob.glob(str(expanded), recursive=True))  # noqa: PTH207
        matches = [expanded] if expanded.exists() else globbed
        files = [file for match in matches for file in _files_of(match, layout)]
        if not files:
            wanted = f" with {', '.join(layout.folder_suffixes)}" if expanded.is_dir() else ""
            raise LongcaError(f"files: {pattern!r} matches no file{wanted} (from {Path.cwd()})")
        found |= {file.resolve(): file for file in files}
    return sorted(found.values())


def _files_of(match: Path, layout: Layout) -> list[Path]:
    if match.is_dir():
        return [
            file
            for file in match.rglob("*")
            if file.is_file()
            and container_suffix(file) in layout.folder_suffixes
            and not any(part.startswith(".") for part in file.relative_to(match).parts)
        ]
    if container_suffix(match) not in RECORD_SUFFIXES + TEXT_SUFFIXES:
        allowed = ", ".join(RECORD_SUFFIXES + TEXT_SUFFIXES)
        raise LongcaError(
            f"{match}: cannot tell its kind; a corpus file ends in {allowed}, then .gz or .zst or neither"
        )
    if not match.exists():
        raise LongcaError(f"{match}: a link to a file that is not there")
    return [match]
