"""A comparison as a figure: each cell's ratio with its interval, around the line where both are the same."""

import json
from collections.abc import Sequence
from typing import Any

import altair as alt

from longca.reporting.compare.cells import Cell
from longca.reporting.compare.sides import Side
from longca.reporting.compare.tables import places, subject
from longca.reporting.figures.data import in_order
from longca.reporting.figures.encodings import PICKED, panel_header, pick_kernel
from longca.reporting.figures.theme import finish, kernel_scales
from longca.reporting.words import plain, words

TITLE = "Latency of B over A"
_ROW = 14


def figure_text(a: Side, b: Side, cells: Sequence[Cell]) -> str:
    """The figure's Vega-Lite specification, written the one way: the same records give the same text."""
    subtitle = [
        f"A: {_source(a)}",
        f"B: {_source(b)}",
        "right of the line B is slower; points: ratio of medians; bars: 95 % confidence interval",
    ]
    with alt.data_transformers.enable("default", max_rows=None):
        spec = finish(_chart(_values(cells)), TITLE, subtitle).to_dict()
    return json.dumps(spec, sort_keys=True, allow_nan=False) + "\n"


def _chart(values: list[dict[str, Any]]) -> alt.FacetChart:
    colours, shapes = kernel_scales(in_order(values, "kernel"))[:2]
    pick = pick_kernel()
    # Room for both ends of every interval, and for the line itself.
    ends = [1.0, *(row[end] for row in values for end in ("low", "high"))]
    scale = alt.Scale(type="log", domain=[min(ends) / 1.02, max(ends) * 1.02], nice=False)
    base = alt.Chart().encode(
        # By a field: a list of thousands of rows to sort by would be one expression, too deep to draw.
        y=alt.Y(
            "row:N", sort=alt.EncodingSortField("order", op="min"), title=None, axis=alt.Axis(labelLimit=0)
        ),
        color=alt.Color("kernel:N", scale=colours, title="kernel"),
        opacity=alt.condition(pick, alt.value(1), alt.value(0.15)),
    )
    spread = base.mark_rule().encode(
        x=alt.X("low:Q", scale=scale, title="latency of B over A (log scale)"), x2="high:Q"
    )
    points = (
        base.mark_point(filled=True, size=38)
        .encode(
            x="ratio:Q",
            shape=alt.Shape("kernel:N", scale=shapes, title="kernel"),
            tooltip=_tooltips(),
        )
        .add_params(pick)
        .properties(name=PICKED)
    )
    same = alt.Chart().mark_rule(color="#777777").encode(x="same:Q")
    layered = alt.layer(same, spread, points, data=alt.Data(values=values))
    panel = alt.Facet("panel:N", sort=in_order(values, "panel"), header=panel_header())
    faceted = layered.properties(width=320, height=alt.Step(_ROW)).facet(facet=panel, columns=1)
    return faceted.resolve_scale(y="independent")


def _tooltips() -> list[alt.Tooltip]:
    texts = [alt.Tooltip(f"{name}:N") for name in ("row", "panel", "verdict")]
    said = {"ratio": "B / A", "low": "2.5 %", "high": "97.5 %", "a_ms": "A (ms)", "b_ms": "B (ms)"}
    return [*texts, *(alt.Tooltip(f"{name}:Q", title=title) for name, title in said.items())]


def _values(cells: Sequence[Cell]) -> list[dict[str, Any]]:
    panels: dict[str, list[Cell]] = {}
    for cell in cells:
        if cell.interval:
            panels.setdefault(f"{words(cell.case.family)}, {cell.case.pass_}", []).append(cell)
    rows = []
    for panel, found in panels.items():
        # The kernels of a place stand below each other.
        placed = [(cell.case.pattern, place, cell) for cell, place in zip(found, places(found), strict=True)]
        order = list(dict.fromkeys(place[:2] for place in placed))
        placed.sort(key=lambda place: order.index(place[:2]))
        rows += [_row(panel, cell, place) for _, place, cell in placed]
    return [row | {"order": number} for number, row in enumerate(rows)]


def _row(panel: str, cell: Cell, place: str) -> dict[str, Any]:
    assert cell.interval
    assert cell.medians
    numbers = cell.interval._asdict() | {"a_ms": cell.medians.a, "b_ms": cell.medians.b}
    return {
        "panel": panel,
        "row": f"{cell.case.pattern}, {place}, {subject(cell.case)}",
        "kernel": cell.case.kernel,
        "verdict": cell.verdict,
        "same": 1,
        **{name: float(f"{value:.5g}") for name, value in numbers.items()},
    }


def _source(side: Side) -> str:
    return f"{plain(str(side.source))}, {side.environment().get('device', 'unknown device')}"
