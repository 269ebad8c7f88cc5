"""The roofline: throughput over FLOPs a byte, under what the same device was measured to do at most."""

from collections.abc import Sequence
from typing import Any

import altair as alt

from longca.flops import ELEMENT_BYTES, attention_flops, least_bytes
from longca.measure.ceilings import Ceilings
from longca.reporting.cells import Cell, cells_of
from longca.reporting.figures.data import cell_values, common_settings, in_order, inline
from longca.reporting.figures.encodings import PICKED, panel_header, pick_kernel, tooltips
from longca.reporting.figures.theme import finish, kernel_scales
from longca.reporting.long import Row
from longca.reporting.words import digits

_WIDTH, _HEIGHT = 340, 220
_HEADROOM = 1.6


def roofline(rows: Sequence[Row], ceilings: Sequence[Ceilings], title: str) -> alt.TopLevelMixin:
    """Every measured cell at its FLOPs a byte, a panel a pass; lines: the ceilings of its device and dtype."""
    cells = cells_of(rows)
    values = [
        value | {"intensity": _short(intensity(cell)), "facet": value["panel"]}
        for cell, value in zip(cells, cell_values(cells), strict=True)
        if cell.ok
    ]
    own = {(cell.place.device, cell.place.dtype) for cell in cells}
    known = [one for one in ceilings if (one.device, one.dtype) in own]
    said = [
        f"{one.device}: matrix product {digits(one.matrix_product_tflops)} TFLOP/s ({one.dtype}), "
        f"copy {digits(one.copy_gb_per_s)} GB/s, both measured"
        for one in known
    ]
    if not said:
        said = ["no ceilings: `longca ceilings` measures the device's"]
    subtitle = [*common_settings(cells), "FLOPs a byte: of what must be moved at least", *said]
    if not values:
        words = alt.Chart(inline([{"said": "not measured"}])).mark_text().encode(text="said:N")
        return finish(words, title, subtitle)
    facets = in_order(values, "facet")
    points = [value["intensity"] for value in values]
    roofs = [
        _roof(one, facet, min(points) / _HEADROOM, max(points) * _HEADROOM)
        for one in known
        for facet in facets
    ]
    return finish(_panels(values, [point for roof in roofs for point in roof], facets), title, subtitle)


def intensity(cell: Cell) -> float:
    """FLOPs of a cell over the bytes it must move at least, over its samples."""
    place = cell.place
    flops = sum(attention_flops(row["area"], place.q_heads, place.head_dim, place.pass_) for row in cell.rows)
    sizes = (place.seqlen, place.q_heads, place.kv_heads, place.head_dim, ELEMENT_BYTES[place.dtype])
    return flops / (len(cell.rows) * least_bytes(*sizes, place.pass_))


def _roof(one: Ceilings, facet: str, low: float, high: float) -> list[dict[str, Any]]:
    """The corners of a device's roof between two intensities: bandwidth up to the ridge, then the product's rate."""
    ridge = one.matrix_product_tflops * 1e3 / one.copy_gb_per_s
    corners = sorted({low, high, *([ridge] if low < ridge < high else [])})
    return [
        {
            "facet": facet,
            "device": f"{one.device}, {one.dtype}",
            "intensity": _short(at),
            "roof": _short(min(one.matrix_product_tflops, at * one.copy_gb_per_s / 1e3)),
        }
        for at in corners
    ]


def _panels(values: list[dict[str, Any]], roofs: list[dict[str, Any]], facets: list[str]) -> alt.FacetChart:
    colours, shapes, _ = kernel_scales(in_order(values, "kernel"))
    pick = pick_kernel()
    x = alt.X(
        "intensity:Q",
        scale=alt.Scale(type="log", nice=False),
        axis=alt.Axis(format="~s", tickCount=6),
        title="FLOPs a byte (log scale)",
    )
    scale = alt.Scale(type="log")
    y = alt.Y(
        "tflops:Q",
        scale=scale,
        axis=alt.Axis(format="~g", tickCount=6),
        title="throughput (TFLOP/s, log scale)",
    )
    base = alt.Chart().encode(x=x)
    points = (
        base.mark_point(filled=True, size=40)
        .encode(
            y=y,
            color=alt.Color("kernel:N", scale=colours, title="kernel"),
            shape=alt.Shape("kernel:N", scale=shapes, title="kernel"),
            opacity=alt.condition(pick, alt.value(1), alt.value(0.15)),
            tooltip=tooltips(values),
        )
        .transform_filter("isValid(datum.tflops)")
        .add_params(pick)
        .properties(name=PICKED)
    )
    lines = (
        base.mark_line(color="#777777", strokeDash=[5, 3])
        .encode(y=alt.Y("roof:Q", scale=scale), detail="device:N")
        .transform_filter("isValid(datum.roof)")
    )
    # A scale over no roof would have no extent.
    layers = [points, lines] if roofs else [points]
    layered = alt.layer(*layers, data=inline([*values, *roofs]))
    layered = layered.properties(width=_WIDTH, height=_HEIGHT)
    return layered.facet(facet=alt.Facet("facet:N", sort=facets, header=panel_header()), columns=2)


def _short(value: float) -> float:
    return float(f"{value:.5g}")
