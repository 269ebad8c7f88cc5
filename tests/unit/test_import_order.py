"""Data flows one way: a module imports, when it is imported, only from what stands before it in CONTRIBUTING.md."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "workflow" / "longca"
# Light: what a study is checked with of what stands after it.
LIGHT = {"longca.kernels.registry", "longca.parallel.registry", "longca.parallel.topology"}


def layers() -> list[list[str]]:
    """Of the line in CONTRIBUTING.md: modules and packages of longca, from the first to the last."""
    (line,) = [one for one in (ROOT / "CONTRIBUTING.md").read_text().splitlines() if " → " in one]
    return [names.split(", ") for names in line.strip().split(" → ")]


def run_at_import(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a module, those inside `try` and `if` too, but for the ones under TYPE_CHECKING."""
    for node in body:
        yield node
        if isinstance(node, ast.Try):
            handled = [one for handler in node.handlers for one in handler.body]
            yield from run_at_import([*node.body, *handled, *node.orelse, *node.finalbody])
        elif isinstance(node, ast.If):
            typed = isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
            yield from run_at_import(node.orelse if typed else [*node.body, *node.orelse])


def imported(file: Path) -> set[str]:
    """Modules of longca that a file imports as it is imported itself: not inside functions, not for types alone."""
    found: set[str] = set()
    for node in run_at_import(ast.parse(file.read_text()).body):
        if isinstance(node, ast.Import):
            found |= {one.name for one in node.names if one.name.startswith("longca.")}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "longca":
            for one in node.names:
                module = Path(*f"{node.module}.{one.name}".split("."))
                is_module = (PACKAGE.parent / module).with_suffix(".py").exists()
                found.add(f"{node.module}.{one.name}" if is_module else str(node.module))
    return found


def test_a_module_imports_from_what_stands_before_it() -> None:
    place = {name: number for number, names in enumerate(layers()) for name in names}
    whole = {path.stem for path in PACKAGE.iterdir() if not path.stem.startswith("_")}
    assert set(place) == whole
    wrong = []
    for file in sorted(PACKAGE.rglob("*.py")):
        own = file.relative_to(PACKAGE).with_suffix("").parts[0]
        if own in place:
            others = imported(file) - LIGHT - {"longca"}
            wrong += [f"{file}: {name}" for name in others if place[name.split(".")[1]] > place[own]]
    assert not wrong
