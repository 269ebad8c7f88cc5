"""Lines over length: throughput and peak memory. A status is a cross below the scale."""

from collections.abc import Sequence
from typing import Any

import altair as alt

from longca.reporting.cells import Cell, cells_of
from longca.reporting.figures.data import (
    cell_values,
    common_settings,
    in_lines,
    in_order,
    inline,
    varying_settings,
)
from longca.reporting.figures.encodings import (
    PICKED,
    length_axis,
    panel_header,
    pick_kernel,
    tflops_axis,
    tooltips,
)
from longca.reporting.figures.menus import chosen_settings, menus_of, with_menus
from longca.reporting.figures.theme import finish, kernel_scales
from longca.reporting.long import Row

_HEIGHT = 132
# Below the scale a band belongs to no number: what has a status instead of one stands there.
_BAND = 14
# Pixels of the scale, from its zero up.
SCALE_RANGE = [_HEIGHT - _BAND, 0]
QUANTILES = "points: median; bars: p20 to p80 of latency"
CROSSES = "crosses below the scale: no number; the tooltip and the table say why"
# A panel of fewer has no line to read: its cells stand in the tables, their throughput in the bars over patterns.
FEWEST_LENGTHS = 3


def over_length(rows: Sequence[Row], title: str) -> alt.TopLevelMixin:
    """Lines over length, a panel a pattern and pass; bars p20 to p80; a cross where there is no number."""
    cells, values, chosen = _of_many_lengths(cells_of(rows))
    chart = line_panels(
        values, length_axis(row["seqlen"] for row in values), tflops_axis(SCALE_RANGE[0]), "tflops"
    )
    chart = with_menus(chart, menus_of(values, chosen, "tflops"))
    return finish(chart, title, [*common_settings(cells), QUANTILES, CROSSES])


def peak_memory(rows: Sequence[Row], title: str) -> alt.TopLevelMixin:
    """Peak memory over the inputs by length, both axes logarithmic, a panel a pattern and pass."""
    cells, values, chosen = _of_many_lengths(cells_of(rows))
    chart = line_panels(values, length_axis(row["seqlen"] for row in values), memory_axis(values), "peak_mib")
    chart = with_menus(chart, menus_of(values, chosen, "peak_mib"))
    return finish(chart, title, [*common_settings(cells), CROSSES])


def _of_many_lengths(cells: Sequence[Cell]) -> tuple[list[Cell], list[dict[str, Any]], list[str]]:
    """The cells of panels that lines are drawn in, their rows, and the settings that are chosen from a menu."""
    rows = cell_values(cells)
    lined = panels_of_many_lengths(rows)
    kept = [cell for cell, row in zip(cells, rows, strict=True) if (row["subject"], row["panel"]) in lined]
    names, places = varying_settings(kept), [cell.place for cell in kept]
    chosen = chosen_settings(
        [{name: getattr(place, name) for name in names} for place in places],
        [(place.pattern, place.dataset, place.pass_) for place in places],
    )
    return kept, cell_values(kept, chosen), chosen


def panels_of_many_lengths(values: Sequence[dict[str, Any]]) -> set[tuple[str, str]]:
    """Subject and panel of those with FEWEST_LENGTHS lengths, or as many as any has where none has so many."""
    lengths: dict[tuple[str, str], set[int]] = {}
    for row in values:
        lengths.setdefault((row["subject"], row["panel"]), set()).add(row["seqlen"])
    fewest = min(FEWEST_LENGTHS, max(map(len, lengths.values()), default=0))
    return {panel for panel, of in lengths.items() if len(of) >= fewest}


def memory_axis(values: list[dict[str, Any]]) -> alt.Y:
    """Peak memory on a logarithmic axis; rows with nothing beyond the inputs have no place there: they lose it."""
    for row in values:
        if row.get("peak_mib") == 0:
            del row["peak_mib"]
    gib, mib = "format(datum.value / 1024, '~g') + ' GiB'", "format(datum.value, '~g') + ' MiB'"
    return alt.Y(
        "peak_mib:Q",
        title="peak memory over inputs",
        scale=alt.Scale(type="log", base=2, range=SCALE_RANGE),
        axis=alt.Axis(labelExpr=f"datum.value >= 1024 ? {gib} : {mib}", tickCount=5),
    )


def line_panels(values: list[dict[str, Any]], x: alt.X, y: alt.Y, field: str) -> alt.FacetChart:
    """A panel a subject and panel of the rows, a line a kernel; where a row lacks `field` a cross below the scale."""
    for row in values:
        row["facet"] = in_lines(row["subject"], row["panel"])
    # All patterns of one pass, then those of the next; a pattern's datasets side by side.
    panels, patterns = in_order(values, "panel"), in_order(values, "pattern")
    by_panel = sorted(values, key=lambda row: (panels.index(row["panel"]), patterns.index(row["pattern"])))
    colours, shapes, dashes = kernel_scales(in_order(values, "kernel"))
    pick = pick_kernel()
    base = alt.Chart().encode(
        x=x,
        color=alt.Color("kernel:N", scale=colours, title="kernel"),
        opacity=alt.condition(pick, alt.value(1), alt.value(0.15)),
    )
    has_number = f"isValid(datum.{field})"
    lines = (
        base.mark_line(strokeWidth=1.5)
        .encode(y=y, strokeDash=alt.StrokeDash("kernel:N", scale=dashes, title="kernel"))
        .transform_filter(has_number)
        .add_params(pick)
        .properties(name=PICKED)
    )
    points = (
        base.mark_point(filled=True, size=38)
        .encode(y=y, shape=alt.Shape("kernel:N", scale=shapes, title="kernel"), tooltip=tooltips(values))
        .transform_filter(has_number)
    )
    crosses = (
        base.mark_point(shape="cross", angle=45, filled=True, size=60)
        .encode(y=alt.value(_HEIGHT - _BAND / 2), tooltip=tooltips(values))
        .transform_filter(f"!{has_number}")
    )
    layers = [lines, points, crosses]
    if field == "tflops":
        spread = base.mark_rule().encode(y="tflops_low:Q", y2="tflops_high:Q")
        layers.insert(1, spread.transform_filter(has_number))
    layered = alt.layer(*layers, data=inline(values)).properties(width=180, height=_HEIGHT)
    panel = alt.Facet("facet:N", sort=in_order(by_panel, "facet"), header=panel_header())
    return layered.facet(facet=panel, columns=_columns(len(in_order(values, "subject"))))


def _columns(subjects: int) -> int:
    """Panels side by side, so that a pass begins a row of its own where that is possible."""
    return next((columns for columns in (4, 3, 2) if subjects % columns == 0), min(subjects, 4))
