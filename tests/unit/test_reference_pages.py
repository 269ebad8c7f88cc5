"""docs/kernels.md and docs/mechanisms.md say what the declarations say."""

from pathlib import Path

import pytest

from longca.kernels.pages import kernel_page
from longca.kernels.registry import FAMILIES, kernel_module, kernel_names
from longca.parallel.pages import mechanism_page
from longca.parallel.registry import MECHANISMS


@pytest.mark.parametrize(
    ("page", "made", "command"),
    [
        ("kernels", kernel_page, "longca kernels --format markdown > docs/kernels.md"),
        ("mechanisms", mechanism_page, "longca mechanisms --format markdown > docs/mechanisms.md"),
    ],
)
def test_a_page_is_as_the_declarations_are(repository: Path, page: str, made, command: str) -> None:
    assert (repository / f"docs/{page}.md").read_text() == made(), f"right: {command}"


def test_every_kernel_and_mechanism_has_a_section_with_its_source(repository: Path) -> None:
    kernels, mechanisms = kernel_page(), mechanism_page()
    for family in FAMILIES:
        for name in kernel_names(family):
            source = f"workflow/{kernel_module(family, name).replace('.', '/')}.py"
            assert f"### {name}\n" in kernels
            assert f"](../{source})" in kernels and (repository / source).is_file()
    assert all(f"## {name}\n" in mechanisms for name in MECHANISMS)
