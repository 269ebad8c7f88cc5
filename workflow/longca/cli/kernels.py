"""Commands about kernels."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from longca.kernels.interface import Kernel


def register(app: typer.Typer) -> None:
    """Add this stage's commands to the application."""
    app.command()(kernels)
    app.command()(mechanisms)


def mechanisms() -> None:
    """List the mechanisms of context parallelism, and what each is."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from longca.parallel.registry import MECHANISMS, load_mechanism

    table = Table("mechanism", "what it is")
    for name in MECHANISMS:
        table.add_row(name, Text(load_mechanism(name).summary))
    Console().print(table)


def kernels() -> None:
    """List the kernels: passes, patterns, and whether each is available here or why not."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from longca.kernels.registry import FAMILIES, KernelModuleError, kernel_names, load_kernel
    from longca.masks.patterns import DYNAMIC_PATTERNS, PATTERNS
    from longca.measure.device_probe import has_gpu

    device = "cuda" if has_gpu() else "cpu"
    static = frozenset(PATTERNS)
    every = {"dense": static, "sparse": frozenset(DYNAMIC_PATTERNS), "context_parallel": static}
    table = Table()
    for column in ("kernel", "family", "passes", "patterns", f"here ({device})", "what it is"):
        table.add_column(column)
    for family in FAMILIES:
        for name in kernel_names(family):
            try:
                kernel = load_kernel(family, name)
            except KernelModuleError as error:
                table.add_row(name, family, "", "", Text(f"no: {error}"), "")
                continue
            row = (
                name,
                family,
                _passes(kernel.support.passes),
                _patterns(kernel.support.patterns, every[family]),
                _available(name, kernel, device),
                kernel.summary,
            )
            table.add_row(*(Text(cell) for cell in row))
    Console().print(table)


def _patterns(known: frozenset[str], every: frozenset[str]) -> str:
    return f"all {len(every)}" if known == every else ", ".join(sorted(known))


def _passes(passes: Mapping[str, tuple[str, ...]]) -> str:
    return "; ".join(f"{device}: {', '.join(names)}" for device, names in passes.items())


def _available(name: str, kernel: "Kernel", device: str) -> str:
    """`yes`, or why not; a library is looked for, not imported (`longca doctor` does that)."""
    import sys
    from importlib.machinery import PathFinder

    from longca.measure.sites import kernel_site

    if device not in kernel.support.passes:
        return f"no: needs {' or '.join(kernel.support.passes)}"
    path = [*map(str, kernel_site(name).path), *sys.path]
    absent = [
        module for module in kernel.imports if PathFinder.find_spec(module.partition(".")[0], path) is None
    ]
    return f"no: module {', '.join(absent)} is not installed" if absent else "yes"
