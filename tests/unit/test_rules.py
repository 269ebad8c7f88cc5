"""What every rule keeps to: nothing that a target's name or a config says becomes a word of the shell."""

import re
from pathlib import Path

import pytest

SHELL = re.compile(r"    shell:\n((?:        .*\n)+)")
PLACE = re.compile(r"\{(?!\{)([^{}]+)\}")
CONSTRAINTS = re.compile(
    r"    wildcard_constraints:\n((?:        .*\n)+)|\nwildcard_constraints:\n((?:    .*\n)+)"
)
DANGEROUS = "$()`';&|<> \n/\\\"*{}"


def rule_texts(repository: Path) -> dict[str, str]:
    return {file.name: file.read_text() for file in sorted((repository / "rules").glob("*.smk"))}


def test_every_value_in_a_shell_command_is_quoted(repository: Path) -> None:
    places = [
        (name, place)
        for name, text in rule_texts(repository).items()
        for command in SHELL.findall(text)
        for place in PLACE.findall(command)
    ]
    assert len(places) > 40
    assert [place for place in places if not place[1].endswith(":q")] == []


def test_every_wildcard_of_a_shell_command_is_constrained(repository: Path) -> None:
    """By a pattern that takes none of what means something to a shell or a path."""
    texts = rule_texts(repository)
    patterns = dict(
        match
        for text in texts.values()
        for groups in CONSTRAINTS.findall(text)
        for match in re.findall(r'^\s+(\w+)=r"(.*)",$', "".join(groups), re.MULTILINE)
    )
    used = {
        name
        for text in texts.values()
        for command in SHELL.findall(text)
        for name in re.findall(r"\{wildcards\.(\w+)", command)
    }
    # These two are constrained to the names of the study's own tables and figures.
    assert used - patterns.keys() == {"table", "figure"}
    for name in used & patterns.keys():
        taken = [letter for letter in DANGEROUS if re.fullmatch(patterns[name], letter)]
        assert taken == [], name


@pytest.mark.parametrize("density", [1.0, 0.5, 0.1234567, 1e-05, 2.5e-07])
def test_a_density_of_a_grid_is_a_density_of_a_target(repository: Path, density: float) -> None:
    found = re.search(r'density=r"(.*)",', (repository / "rules" / "common.smk").read_text())
    assert found is not None
    assert re.fullmatch(found[1], str(density))
