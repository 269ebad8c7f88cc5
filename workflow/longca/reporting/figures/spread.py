"""The spread of the samples: how far single calls were from their case's median."""

import statistics
from collections.abc import Sequence
from typing import Any

import altair as alt
import numpy as np

from longca.reporting.cells import device_of
from longca.reporting.figures.data import in_order, inline
from longca.reporting.figures.encodings import panel_header
from longca.reporting.figures.theme import finish, kernel_scales
from longca.reporting.long import Row
from longca.reporting.words import plain

_QUANTILES = {"p1": 1, "p20": 20, "p50": 50, "p80": 80, "p99": 99, "largest": 100}


def sample_spread(rows: Sequence[Row], title: str) -> alt.TopLevelMixin:
    """A bar a kernel: calls in percent of their case's median, over all its ok cases; a panel a pass and device."""
    values = _spreads(rows)
    base = alt.Chart().encode(y=alt.Y("kernel:N", sort=in_order(values, "kernel"), title=None))
    tips = [alt.Tooltip("kernel:N"), alt.Tooltip("calls:Q"), alt.Tooltip("cases:Q")]
    tips += [alt.Tooltip(f"{name}:Q", title=f"{name} (%)") for name in _QUANTILES]
    title_x = "call over its case's median, less 1 (%)"
    colour = alt.Color("kernel:N", scale=kernel_scales(in_order(values, "kernel"))[0], legend=None)
    whole = base.mark_rule(color="#888888").encode(x=alt.X("p1:Q", title=title_x), x2="p99:Q")
    middle = base.mark_bar(size=9).encode(x="p20:Q", x2="p80:Q", color=colour, tooltip=tips)
    largest = base.mark_tick(thickness=2, size=9, color="#888888").encode(x="largest:Q", tooltip=tips)
    layered = alt.layer(whole, middle, largest, data=inline(values)).properties(
        width=380, height=alt.Step(18)
    )
    panel = alt.Facet("panel:N", sort=in_order(values, "panel"), header=panel_header())
    faceted = layered.facet(facet=panel, columns=1)
    return finish(
        faceted, title, ["bars: p20 to p80 of all calls; lines: p1 to p99; ticks: the slowest call"]
    )


def _spreads(rows: Sequence[Row]) -> list[dict[str, Any]]:
    groups: dict[tuple[str, str], list[list[float]]] = {}
    for row in rows:
        if row["status"] == "ok":
            panel = f"{row['pass']}, {plain(device_of(row))}"
            median = statistics.median(row["samples_ms"])
            groups.setdefault((panel, row["kernel"]), []).append(
                [(sample / median - 1) * 100 for sample in row["samples_ms"]]
            )
    return [
        {
            "panel": panel,
            "kernel": kernel,
            "cases": len(cases),
            "calls": sum(map(len, cases)),
            **_quantiles([percent for case in cases for percent in case]),
        }
        for (panel, kernel), cases in groups.items()
    ]


def _quantiles(percents: list[float]) -> dict[str, float]:
    found = np.percentile(percents, list(_QUANTILES.values()))
    return {name: round(float(value), 3) for name, value in zip(_QUANTILES, found, strict=True)}
