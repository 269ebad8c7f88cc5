"""The identity of code: a digest of what a module is made of, computed without importing anything.

It covers the syntax trees (no comments, no docstrings) of the module and of what it imports inside its own package, so
that an edit elsewhere, or one that no machine sees, leaves it as it is. Snakemake asks for it at every start.
"""

import ast
import hashlib
import importlib.util
import re
import sys
from functools import cache
from pathlib import Path

from longca.errors import LongcaError

# What importlib may be given: a dotted name in full.
_MODULE = re.compile(r"[a-z_]\w*(\.[a-z_]\w*)+")


@cache
def closure_digest(module: str, without: tuple[str, ...] = ()) -> str:
    """Digest of `module` and of its imports from its own package, transitively, modules below `without` left out."""
    package = module.partition(".")[0]
    found: dict[str, str] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name in found or any(name == other or name.startswith(f"{other}.") for other in without):
            continue
        read = _read(name)
        if read is not None:
            found[name], imported = read
            waiting += [other for other in imported if other.partition(".")[0] == package]
    return digest(*(f"{name}\n{found[name]}" for name in sorted(found)))


def digest(*parts: str) -> str:
    """Sixteen hexadecimal digits that stand for these texts in this order."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


@cache
def _read(module: str) -> tuple[str, list[str]] | None:
    """A module's syntax tree as text, and the names it imports, sorted; None where it has no source.

    Once a process: many closures share most of their modules.
    """
    tree = _tree(module)
    return None if tree is None else (_text(tree), sorted(_imported(tree, module)))


def _tree(module: str) -> ast.Module | None:
    """The syntax tree of a module without docstrings, or None where it has no source.

    Raises LongcaError for one that is no Python.
    """
    spec = _find(module)
    if spec is None or not spec.endswith(".py"):
        return None
    try:
        tree = ast.parse(Path(spec).read_bytes(), spec)
    except SyntaxError as error:
        raise LongcaError(f"{spec}:{error.lineno}: {error.msg}; right: Python") from error
    for node in ast.walk(tree):
        if isinstance(
            node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        ) and ast.get_docstring(node):
            node.body = node.body[1:]
    return tree


def _text(tree: ast.Module) -> str:
    """A tree's dump as Python 3.12 writes it, whichever Python this is: a digest is the same on every machine."""
    if sys.version_info >= (3, 13):
        return ast.dump(tree, show_empty=True)
    if sys.version_info < (3, 12):
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                vars(node).update(_fields=(*node._fields, "type_params"), type_params=[])
    return ast.dump(tree)


@cache
def _find(module: str) -> str | None:
    """The source file of a module, found without running it where its package is on disk beside this one."""
    top, _, rest = module.partition(".")
    spec = importlib.util.find_spec(top)
    if spec is None or not rest:
        return spec.origin if spec else None
    for folder in spec.submodule_search_locations or ():
        base = Path(folder, *rest.split("."))
        for candidate in (base.with_suffix(".py"), base / "__init__.py"):
            if candidate.is_file():
                return str(candidate)
    return None


def _imported(tree: ast.Module, module: str) -> set[str]:
    """Names of the modules a tree imports, by statement or by their name as text, and of what may be one."""
    found: set[str] = set()
    file = _find(module) or ""
    package = module if file.endswith("__init__.py") else module.rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".")
            base = ".".join(parts[: len(parts) - node.level + 1]) if node.level else ""
            source = ".".join(filter(None, [base, node.module]))
            found |= {source} | {f"{source}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _MODULE.fullmatch(node.value):
            found.add(node.value)
    return found
