"""Lines over density: throughput, what sparsity gains a kernel, and what memory it takes."""

import textwrap
from collections.abc import Sequence
from typing import Any

import altair as alt

from longca.reporting.cells import Cell, cells_of
from longca.reporting.figures.data import cell_values, common_settings, varying_settings
from longca.reporting.figures.encodings import tflops_axis
from longca.reporting.figures.lines import CROSSES, QUANTILES, SCALE_RANGE, line_panels, memory_axis
from longca.reporting.figures.menus import chosen_settings, menus_of, with_menus
from longca.reporting.figures.theme import finish
from longca.reporting.long import Row
from longca.reporting.sparse_findings import verdicts_in_short
from longca.reporting.sparse_speedup import speedups

# Characters of a line above the figure: more would make it wider than its panels.
_LINE = 76


def throughput_over_density(rows: Sequence[Row], title: str) -> alt.TopLevelMixin:
    """Throughput of kept cells, a panel a pattern with its block size, length and pass; bars p20 to p80.

    The paper's order stands above it, reproduced or refuted: it is what the lines show.
    """
    cells = cells_of(rows)
    values, chosen = _by_block(cells)
    chart = _panels(values, chosen, tflops_axis(SCALE_RANGE[0]), "tflops")
    found = [line for verdict in verdicts_in_short(cells) for line in textwrap.wrap(verdict, _LINE)]
    return finish(chart, title, [*common_settings(cells), QUANTILES, CROSSES, *found])


def speedup_over_density(rows: Sequence[Row], title: str) -> alt.TopLevelMixin:
    """Speed-up over the same kernel at density 1, a panel a pattern with its block size, length and pass."""
    cells = cells_of(rows)
    values, chosen = _by_block(cells)
    for row, gain in zip(values, speedups(cells), strict=True):
        if gain is not None:
            row["speedup"] = float(f"{gain:.5g}")
    y = alt.Y(
        "speedup:Q", title="speed-up over density 1", scale=alt.Scale(type="log", base=2, range=SCALE_RANGE)
    )
    said = "the same kernel's time at density 1 over its time here; 1 / density is what kept cells alone would give"
    return finish(_panels(values, chosen, y, "speedup"), title, [*common_settings(cells), said, CROSSES])


def memory_over_density(rows: Sequence[Row], title: str) -> alt.TopLevelMixin:
    """Peak memory over the inputs, a panel a pattern with its block size, length and pass."""
    cells = cells_of(rows)
    values, chosen = _by_block(cells)
    chart = _panels(values, chosen, memory_axis(values), "peak_mib")
    return finish(chart, title, [*common_settings(cells), CROSSES])


def _by_block(cells: Sequence[Cell]) -> tuple[list[dict[str, Any]], list[str]]:
    """The rows with a panel for each block size, and for each length but where lengths are chosen; what is chosen."""
    names = ["seqlen", *varying_settings(cells)]
    places = [cell.place for cell in cells]
    chosen = chosen_settings(
        [{name: getattr(place, name) for name in names} for place in places],
        [(place.pattern, place.block, place.pass_) for place in places],
    )
    values = cell_values(cells, chosen)
    for row in values:
        row["subject"] = f"{row['subject']} {row['block']}"
        if "seqlen" not in chosen:
            row["panel"] = f"{row['panel']}, {row['seqlen']} tokens"
    return values, chosen


def _panels(values: list[dict[str, Any]], chosen: Sequence[str], y: alt.Y, field: str) -> alt.FacetChart:
    chart = line_panels(values, _density_axis(values), y, field)
    return with_menus(chart, menus_of(values, chosen, field))


def _density_axis(values: list[dict[str, Any]]) -> alt.X:
    scale = alt.Scale(domain=[0, max(row["density"] for row in values)], padding=8)
    return alt.X("density:Q", title="density (share of cells kept)", axis=alt.Axis(format="%"), scale=scale)
