"""docs/kernels.md and a page a kernel, all its families on it: what it declares, says of itself and came to."""

import importlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from longca.kernels.interface import Kernel
from longca.kernels.registry import FAMILIES, kernel_module, kernel_names, load_kernel
from longca.parallel.registry import MECHANISMS
from longca.reporting.long import Row
from longca.reporting.pages.declared import facts, how_many, passes
from longca.reporting.pages.measured import NOT_MEASURED, rows_of, throughput
from longca.reporting.pages.text import MARK, said, table, with_links

_TITLES = {
    "dense": "Dense",
    "sparse": "Block-sparse",
    "context_parallel": "Local kernel of context parallelism",
}
# Kernels that have more to say than a docstring.
_MORE = {
    "segments": "segments.md",
    "flashmask": "flashmask.md",
    "vsa": "video_sparse.md",
    "vsa_triton": "video_sparse.md",
}
_LIST = """# Kernels

A page each: what it declares, how it gets its mask, and what [results/h200](../results/h200) measured of it
([how](method.md)). How to add one: [README](../README.md#add-a-kernel).

Every kernel of a cell gets the same slices. **Dense** kernels compute the static [patterns](masks.md). A library that
knows no masks is asked for their *native form*, found by lowering the slices, never by a pattern's name: a whole
sequence, causal, a window (with one or two sides) or packed sequences (varlen), full or causal. A mask without such a
form is `unsupported` for it; nothing is put into a dense mask in disguise. The form taken stands in a record's
`backend`, as in `flash-attn 3, varlen causal`. **Block-sparse** kernels compute the dynamic patterns, a map of blocks
for each KV head ([sparse.md](sparse.md)). **Local** kernels compute on a rank, under every [mechanism](mechanisms.md)
([context_parallel.md](context_parallel.md#local-kernels)).

What a kernel cannot do is declared beside its adapter and refused before anything runs; what only the library knows, it
says itself, and its words are the reason. A library that is not installed is `missing`, with the import's error.

"""


def kernel_pages(results: Path) -> dict[str, str]:
    """Path below docs -> text, of this package's own kernels; `results` is the reference study's folder."""
    rows = {family: rows_of(results, family) for family in FAMILIES}
    named = {name: _families(name) for family in FAMILIES for name in kernel_names(family)}
    own = {name: families for name, families in named.items() if families}
    pages = {f"kernels/{name}.md": _page(name, own, rows) for name in own}
    return {"kernels.md": MARK + _LIST + _list(own), **pages}


def _families(name: str) -> dict[str, Kernel]:
    """The families in which this package has a kernel of this name."""
    return {
        family: load_kernel(family, name)
        for family in FAMILIES
        if name in kernel_names(family) and kernel_module(family, name).startswith("longca.")
    }


def _list(own: Mapping[str, Mapping[str, Kernel]]) -> str:
    return table(
        ("kernel", "what it is", "families: patterns", "passes"),
        [
            (
                f"[`{name}`](kernels/{name}.md)",
                next(iter(families.values())).summary,
                "; ".join(
                    f"{_TITLES[family].split()[0].lower()}: {how_many(family, kernel.support)}"
                    for family, kernel in families.items()
                ),
                " / ".join(dict.fromkeys(passes(kernel.support) for kernel in families.values())),
            )
            for name, families in own.items()
        ],
    )


def _page(name: str, own: Mapping[str, Mapping[str, Kernel]], rows: Mapping[str, Sequence[Row]]) -> str:
    families = own[name]
    parts = [f"{MARK}# {name}\n", f"{next(iter(families.values())).summary}.\n"]
    if name in _MORE:
        parts.append(f"How it works and how fast: [{_MORE[name]}](../{_MORE[name]}).\n")
    for position, (family, kernel) in enumerate(families.items()):
        parts.append(f"## {_TITLES[family]}\n")
        if position:
            parts.append(f"{kernel.summary}.\n")
        parts += _section(family, name, kernel, rows[family])
    return with_links("\n".join(parts), own.keys() - {name})


def _section(family: str, name: str, kernel: Kernel, rows: Sequence[Row]) -> Iterator[str]:
    module = kernel_module(family, name)
    text = said(importlib.import_module(module))
    if text:
        yield f"{text}\n"
    yield table(("", ""), facts(family, module, kernel))
    yield "### Measured\n"
    if family == "context_parallel":
        yield _under_mechanisms(name, rows)
    else:
        yield throughput(name, kernel.support, rows) or NOT_MEASURED


def _under_mechanisms(name: str, rows: Sequence[Row]) -> str:
    under = {row["mechanism"] for row in rows if row["kernel"] == name}
    links = ", ".join(
        f"[{mechanism}](../mechanisms/{mechanism}.md#measured)"
        for mechanism in MECHANISMS
        if mechanism in under
    )
    return f"Under {links}.\n" if links else NOT_MEASURED
