"""All derived pages of docs/, and writing them."""

from pathlib import Path

from longca.errors import LongcaError
from longca.files import write_atomically
from longca.reporting.pages.kernels import kernel_pages
from longca.reporting.pages.mechanisms import mechanism_pages

FOLDERS = ("kernels", "mechanisms")


def pages(results: Path) -> dict[str, str]:
    """Path below docs -> text of every derived page; `results` is the folder of the reference study.

    A table it has not got yet is said to be not measured. Raises LongcaError where it has none at all.
    """
    if not (results / "tables").is_dir():
        raise LongcaError(f"{results}/tables: is not there; right: `longca pages` in the repository's folder")
    return kernel_pages(results) | mechanism_pages(results)


def write_pages(docs: Path, results: Path) -> None:
    """Write every derived page below `docs`, and remove those of kernels and mechanisms that are gone."""
    made = pages(results)
    for path, text in made.items():
        write_atomically(docs / path, text)
    for folder in FOLDERS:
        for file in (docs / folder).glob("*.md"):
            if file.relative_to(docs).as_posix() not in made:
                file.unlink()
