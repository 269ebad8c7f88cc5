"""A page on all mechanisms for people to read, derived from their declarations: docs/mechanisms.md."""

import importlib
import inspect

from longca.parallel.registry import MECHANISMS, SINGLE, load_mechanism, mechanism_module

_INTRODUCTION = """# Mechanisms

Derived from the declarations beside the mechanisms: `longca mechanisms --format markdown` prints this page, a test
keeps it in step. How they are put together, and what their communication costs:
[context_parallel.md](context_parallel.md).
What computes on each rank: [kernels.md](kernels.md#local-kernels-of-context-parallelism).
"""
_SIZES = {
    "ulysses": "U: ranks that heads are divided over",
    "ring": "R: ranks that the sequence is divided over",
    "windows": "windows of the ring",
}


def mechanism_page() -> str:
    """All mechanisms of the registry and the single rank, a section each."""
    return "\n".join([_INTRODUCTION, *map(_section, (*MECHANISMS, SINGLE))])


def _section(name: str) -> str:
    form, module = load_mechanism(name), mechanism_module(name)
    source = f"workflow/{module.replace('.', '/')}.py"
    sizes = [text for size, text in _SIZES.items() if getattr(form, f"takes_{size}")]
    lines = [
        f"| what it is | {form.summary} |",
        f"| sizes above 1 | {'; '.join(sizes) or 'none'} |",
        f"| source | [{source}](../{source}) |",
    ]
    said = inspect.getdoc(importlib.import_module(module)) or ""
    return "\n".join([f"## {name}\n", f"{said}\n", "| | |", "|---|---|", *lines, ""])
