"""A page on all kernels for people to read, derived from their declarations: docs/kernels.md."""

from collections.abc import Iterable, Iterator

from longca.kernels.fingerprint import pinned_version
from longca.kernels.interface import Kernel, Support
from longca.kernels.registry import FAMILIES, kernel_module, kernel_names, load_kernel
from longca.masks.patterns import DYNAMIC_PATTERNS, PATTERNS

_INTRODUCTION = """# Kernels

Derived from the declarations beside the kernels: `longca kernels --format markdown` prints this page, a test keeps it
in step. What was measured of them stands in a study's support table.
How to add one: [README](../README.md#add-a-kernel).
"""
_TITLES = {
    "dense": ("Dense kernels", "The static patterns, one GPU or CPU."),
    "sparse": ("Block-sparse kernels", "The dynamic patterns: a map of blocks for each KV head."),
    "context_parallel": (
        "Local kernels of context parallelism",
        "What computes on a rank, under every [mechanism](mechanisms.md).",
    ),
}


def kernel_page() -> str:
    """All kernels of the registry that are this package's own, a section each."""
    return "\n".join([_INTRODUCTION, *(text for family in FAMILIES for text in _family(family))])


def _family(family: str) -> Iterator[str]:
    title, what = _TITLES[family]
    yield f"## {title}\n\n{what}\n"
    for name in kernel_names(family):
        module = kernel_module(family, name)
        if module.startswith("longca."):
            yield _section(family, name, module, load_kernel(family, name))


def _section(family: str, name: str, module: str, kernel: Kernel) -> str:
    source = f"workflow/{module.replace('.', '/')}.py"
    facts = {
        "runs": "; ".join(
            f"{device}: {', '.join(passes)}" for device, passes in kernel.support.passes.items()
        ),
        "patterns": _patterns(family, kernel.support),
        "dtypes": ", ".join(sorted(kernel.support.dtypes)),
        **dict(_limits(kernel.support)),
        "library": ", ".join(_pinned(kernel.distributions)) or "none beside those of every kernel",
        "source": f"[{source}](../{source})",
    }
    lines = [f"| {key} | {_cell(value)} |" for key, value in facts.items()]
    return "\n".join([f"### {name}\n", f"{kernel.summary}\n", "| | |", "|---|---|", *lines, ""])


def _patterns(family: str, support: Support) -> str:
    every = DYNAMIC_PATTERNS if family == "sparse" else PATTERNS
    if support.patterns == frozenset(every):
        return f"all {len(every)}"
    return ", ".join(f"`{name}`" for name in every if name in support.patterns)


def _limits(support: Support) -> Iterator[tuple[str, str]]:
    if support.head_dims is not None:
        yield "head dimensions", ", ".join(map(str, sorted(support.head_dims)))
    if not support.grouped_heads:
        yield "heads", "as many key-value heads as query heads"
    if support.capability or support.capability_below:
        ends = (("from", support.capability), ("below", support.capability_below))
        yield "CUDA compute capability", " ".join(f"{word} {end[0]}.{end[1]}" for word, end in ends if end)
    for pass_, sizes in support.blocks.items():
        yield f"blocks, {pass_}", ", ".join(map(str, sorted(sizes))) + " tokens"
    if support.seqlen_multiple > 1:
        yield "lengths", f"multiples of {support.seqlen_multiple} tokens"
    for what, reason in support.without.items():
        yield f"without {what}", reason


def _pinned(distributions: Iterable[str]) -> Iterator[str]:
    for name in distributions:
        version = pinned_version(name)
        yield f"{name} {version.replace('|', ' or ')}" if version else name


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
