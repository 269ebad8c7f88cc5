"""The identity of a kernel's code: what must be the same for an earlier measurement to hold.

The digest covers the syntax trees (no comments, no docstrings) of the kernel's module and of what it imports inside
this package, the shared interface and registry left out, so that an edit elsewhere reruns nothing. No library is
imported to compute it: Snakemake asks for it at every start.
"""

import ast
import hashlib
import importlib.util
import re
from functools import cache
from pathlib import Path

from longca.kernels.registry import kernel_module, load_kernel

_ENVS = Path(__file__).parents[3] / "envs"
# Shared by all kernels: what they hand over is checked by the measurement itself.
_SHARED = {
    "longca.kernels.interface",
    "longca.kernels.registry",
    "longca.cases",
    "longca.errors",
    "longca.names",
}


@cache
def source_fingerprint(family: str, kernel: str) -> str:
    """Digest of a kernel's source closure and of the pins of its distributions in envs/. The same on every machine."""
    pins = [f"{name}=={pinned_version(name)}" for name in load_kernel(family, kernel).distributions]
    return _digest(closure_digest(kernel_module(family, kernel)), *pins)


def measured_fingerprint(family: str, kernel: str, versions: dict[str, str | None]) -> str:
    """Digest of a kernel's source closure and of the versions of its distributions that were really imported."""
    return _digest(
        closure_digest(kernel_module(family, kernel)), *(f"{n}=={versions[n]}" for n in sorted(versions))
    )


@cache
def closure_digest(module: str) -> str:
    """Digest of the syntax trees of `module` and of what it imports from its own package, transitively."""
    package = module.partition(".")[0]
    found: dict[str, str] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name in found or name in _SHARED:
            continue
        tree = _tree(name)
        if tree is not None:
            found[name] = ast.dump(tree)
            waiting += sorted(n for n in _imported(tree, name) if n.partition(".")[0] == package)
    return _digest(*(f"{name}\n{found[name]}" for name in sorted(found)))


def pinned_version(distribution: str) -> str | None:
    """The version envs/*.txt pin a distribution to; several sets may pin different ones: all, sorted, joined by |."""
    pattern = re.compile(rf"{re.escape(distribution)}(?:\[[^\]]*\])?\s*==\s*([^\s;#]+)", re.IGNORECASE)
    lines = [line for file in sorted(_ENVS.rglob("*.txt")) for line in file.read_text().splitlines()]
    versions = sorted({match[1] for line in lines if (match := pattern.match(line.strip()))})
    return "|".join(versions) or None


def _tree(module: str) -> ast.Module | None:
    """The syntax tree of a module without docstrings, or None where it has no source."""
    spec = _find(module)
    if spec is None or not spec.endswith(".py"):
        return None
    tree = ast.parse(Path(spec).read_bytes())
    for node in ast.walk(tree):
        if isinstance(
            node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        ) and ast.get_docstring(node):
            node.body = node.body[1:]
    return tree


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
    """Names of the modules a tree imports, anywhere in it, and those of attributes that may be modules."""
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
    return found


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
