"""docs/mechanisms.md and a page a mechanism: how it works, what it sends, and what it came to."""

import importlib
import inspect
from collections.abc import Callable, Sequence
from pathlib import Path

from longca.parallel.form import Form
from longca.parallel.registry import MECHANISMS, SINGLE, load_mechanism, mechanism_module
from longca.reporting.cells import Cell, cells_of
from longca.reporting.long import Row
from longca.reporting.mechanisms import as_mechanisms, efficiency, most
from longca.reporting.pages.measured import NOT_MEASURED, Passes, in_one_cell, rows_of, settings_of
from longca.reporting.pages.text import MARK, said, source_link, table, with_links
from longca.reporting.sections import flag_note, setting

_LIST = """# Mechanisms

How attention is spread over ranks: a page each, with what it sends and what [results/h200](../results/h200) measured of
it. How they are put together, sharded, merged and measured: [context_parallel.md](context_parallel.md). Every one
computes forward and backward of all static patterns, over any local [kernel](kernels.md) that knows what a rank gets.

"""
_SIZES = {
    "ulysses": "U: ranks that heads are divided over",
    "ring": "R: ranks that the sequence is divided over",
    "windows": "N: windows of the ring",
}
_LEGEND = """t tokens a rank, D the head dimension, e bytes an element; sums of dK and dV travel in 4 bytes.
What is counted at every send equals this, on lengths that divide; a case in which it does not is `wrong`.
"""
_READ = """Forward/backward. Efficiency is computation alone over the whole: what is missing to 1 is exposed
communication, merging and sums. Setting:"""
# Title and value of what is shown of a mechanism.
_SHOWN: tuple[tuple[str, Callable[[Cell], float | None]], ...] = (
    ("efficiency", efficiency),
    ("TFLOP/s a rank", Cell.throughput),
    ("MiB sent by the busiest rank", most("communication_bytes", 2**20)),
)


def sent_formula(form: Form) -> dict[str, str]:
    """Bytes a rank sends by pass, as an expression that Python reads, too; `longca.parallel.volume` computes them."""
    kv = "kv" if form.takes_ulysses else "kv_heads"
    exchange = f"(U - 1) / U * t * D * e * (2 * q_heads + 2 * {kv})" if form.takes_ulysses else ""
    moved = f"(R - 1) * 2 * t * {kv} * D" if form.takes_ring else ""
    each = {"forward": "e", "backward": "(e + 4)"}
    return {
        pass_: " + ".join(filter(None, (exchange, moved and f"{moved} * {size}"))) or "0"
        for pass_, size in each.items()
    }


def mechanism_pages(results: Path) -> dict[str, str]:
    """Path below docs -> text; `results` is the reference study's folder."""
    rows = rows_of(results, "context_parallel")
    names = (*MECHANISMS, SINGLE)
    pages = {f"mechanisms/{name}.md": _page(name, rows) for name in names}
    listed = [
        (f"[`{name}`](mechanisms/{name}.md)", load_mechanism(name).summary, _sizes(load_mechanism(name)))
        for name in names
    ]
    return {
        "mechanisms.md": MARK + _LIST + table(("mechanism", "what it is", "sizes above 1"), listed),
        **pages,
    }


def _page(name: str, rows: Sequence[Row]) -> str:
    form, module = load_mechanism(name), mechanism_module(name)
    loaded = importlib.import_module(module)
    first = (inspect.getdoc(loaded) or "").partition("\n")[0]
    facts = [("what it is", form.summary), ("sizes above 1", _sizes(form)), ("source", source_link(module))]
    text = said(loaded)
    parts = [f"{MARK}# {name}\n", f"{first}\n", table(("", ""), facts)]
    parts += ["## How it works\n", f"{text}\n"] if text else []
    parts += [_sent(form)] if form.takes_ulysses or form.takes_ring else []
    parts += [
        "## Measured\n",
        _measured(form, as_mechanisms([row for row in rows if row["mechanism"] == name])),
    ]
    return with_links("\n".join(parts), {*MECHANISMS} - {name})


def _sizes(form: Form) -> str:
    return "; ".join(text for size, text in _SIZES.items() if getattr(form, f"takes_{size}")) or "none"


def _sent(form: Form) -> str:
    lines = [f"    {pass_:10}{formula}" for pass_, formula in sent_formula(form).items()]
    replicated = "kv = lcm(kv_heads, U). " if form.takes_ulysses else ""
    return "\n".join(["## Bytes a rank sends\n", *lines, f"\n{replicated}{_LEGEND}"])


def _measured(form: Form, rows: Sequence[Row]) -> str:
    """A table for each setting: what every arrangement came to, by pattern, ranks and tokens."""
    cells = cells_of(rows)
    if not cells:
        return NOT_MEASURED
    return "\n".join(
        f"{_READ} {setting(group[0].place, cells)}.\n\n{_table(form, group)}\n{flag_note(group)}\n"
        for group in settings_of(cells)
    )


def _table(form: Form, cells: Sequence[Cell]) -> str:
    several = len({cell.kernel for cell in cells}) > 1
    found: dict[tuple[str, ...], Passes] = {}
    for cell in cells:
        place = cell.place
        sharding = (cell.rows[0]["sharding"],) if form.takes_ring else ()
        own = (cell.kernel,) if several else ()
        row = (*own, place.pattern, str(place.ranks), str(place.seqlen // place.ranks), *sharding)
        found.setdefault(row, {})[place.pass_] = cell
    headers = (
        *(("arrangement",) if several else ()),
        *("pattern", "ranks", "tokens a rank"),
        *(("sharding",) if form.takes_ring else ()),
    )
    lines = [(*row, *(in_one_cell(passes, value) for _, value in _SHOWN)) for row, passes in found.items()]
    return table((*headers, *(title for title, _ in _SHOWN)), lines)
