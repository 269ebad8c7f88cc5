"""What a kernel declares, as facts to read."""

import importlib
import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path

from longca.kernels.fingerprint import pinned_version
from longca.kernels.interface import Kernel, Support
from longca.kernels.native_form import reasons_without
from longca.masks.patterns import DYNAMIC_PATTERNS, PATTERNS
from longca.reporting.pages.text import source_link

_PINS = Path(__file__).parents[4] / "envs" / "kernels"


def facts(family: str, module: str, kernel: Kernel) -> Iterator[tuple[str, str]]:
    """Names and Markdown texts of all that a kernel declares. Its adapter's FORMS are the native forms it takes."""
    support = kernel.support
    forms: tuple[str, ...] = getattr(importlib.import_module(module), "FORMS", ())
    yield "runs", passes(support)
    yield "patterns", _patterns(family, support)
    if forms:
        yield "native forms", ", ".join(forms)
    yield "dtypes", ", ".join(sorted(support.dtypes))
    yield from _limits(support)
    yield from _refusals(support, forms)
    yield "library", ", ".join(_libraries(kernel))
    yield "source", source_link(module)


def passes(support: Support) -> str:
    """On which device it computes which passes."""
    return "; ".join(f"{device}: {', '.join(names)}" for device, names in support.passes.items())


def how_many(family: str, support: Support) -> str:
    """Of how many patterns of its family it computes how many."""
    known, every = len(support.patterns), len(_every(family))
    return f"all {every}" if known == every else f"{known} of {every}"


def _every(family: str) -> tuple[str, ...]:
    return tuple(DYNAMIC_PATTERNS if family == "sparse" else PATTERNS)


def _patterns(family: str, support: Support) -> str:
    every = _every(family)
    if support.patterns == frozenset(every):
        return f"all {len(every)} {'dynamic' if family == 'sparse' else 'static'} ones"
    return _names(name for name in every if name in support.patterns)


def _limits(support: Support) -> Iterator[tuple[str, str]]:
    if support.head_dims is not None:
        yield "head dimensions", _sizes(support.head_dims)
    if not support.grouped_heads:
        yield "heads", "as many key-value heads as query heads"
    if support.capability or support.capability_below:
        ends = (("from", support.capability), ("below", support.capability_below))
        yield "CUDA compute capability", " ".join(f"{word} {end[0]}.{end[1]}" for word, end in ends if end)
    for pass_, sizes in support.blocks.items():
        yield f"blocks, {pass_}", f"{_sizes(sizes)} tokens"
    if support.seqlen_multiple > 1:
        yield "lengths", f"multiples of {support.seqlen_multiple} tokens"


def _refusals(support: Support, forms: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    formless = reasons_without(forms) if forms else {}
    if formless:
        yield "unsupported", f"{_names(formless)}: none of its native forms"
    for what, reason in support.without.items():
        if what not in formless:
            yield f"without {what}", reason


def _libraries(kernel: Kernel) -> Iterator[str]:
    """Each distribution with its pinned version, of the generation it is for, linked to its file in envs/kernels."""
    for name in kernel.distributions:
        major = kernel.majors.get(name)
        versions = [
            version
            for version in (pinned_version(name) or "").split("|")
            if major is None or version.startswith(f"{major}.")
        ]
        words = f"{name} {' or '.join(versions)}".strip()
        file = _pinning(name, versions)
        yield f"[{words}](../../envs/kernels/{file.name})" if file else words


def _pinning(name: str, versions: list[str]) -> Path | None:
    """The file of envs/kernels that pins a distribution to one of these versions, or builds it from a repository."""
    pins = "|".join([" @ ", *(rf"=={re.escape(version)}$" for version in versions if version)])
    pattern = re.compile(rf"^{re.escape(name)}({pins})", re.MULTILINE)
    return next((file for file in sorted(_PINS.glob("*.txt")) if pattern.search(file.read_text())), None)


def _names(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _sizes(sizes: Iterable[int]) -> str:
    """Rising sizes; many in equal steps as a range: 8, 16, ... 128."""
    listed = sorted(sizes)
    steps = {after - before for before, after in pairwise(listed)}
    if len(listed) > 4 and len(steps) == 1:
        return f"{listed[0]}, {listed[1]}, ... {listed[-1]}"
    return ", ".join(map(str, listed))
