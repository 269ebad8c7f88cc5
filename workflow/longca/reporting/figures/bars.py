"""Bars over patterns. A status without a number is a word where its bar would stand."""

from collections.abc import Sequence

import altair as alt

from longca.reporting.cells import cells_of
from longca.reporting.figures.data import cell_values, common_settings, in_order
from longca.reporting.figures.encodings import PICKED, panel_header, pick_kernel, tflops_axis, tooltips
from longca.reporting.figures.theme import finish, kernel_scales
from longca.reporting.long import Row

_HEIGHT = 160


def over_patterns(rows: Sequence[Row], title: str) -> alt.TopLevelMixin:
    """Bars over patterns, a panel a pass and length; a status stands as a word where its bar would."""
    cells = cells_of(rows)
    values = cell_values(cells)
    for row in values:
        row["facet"] = f"{row['panel']}, {row['seqlen']} tokens"
    panels, lengths = in_order(values, "panel"), sorted(in_order(values, "seqlen"))
    by_pattern = sorted(values, key=lambda row: in_order(values, "pattern").index(row["pattern"]))
    subjects, kernels = in_order(by_pattern, "subject"), in_order(values, "kernel")
    pick = pick_kernel()
    base = alt.Chart().encode(
        x=alt.X("subject:N", sort=subjects, title=None, axis=alt.Axis(labelAngle=-35, labelLimit=0)),
        xOffset=alt.XOffset("kernel:N", sort=kernels),
        opacity=alt.condition(pick, alt.value(1), alt.value(0.15)),
        tooltip=tooltips(values),
    )
    measured = base.transform_filter("isValid(datum.tflops)")
    colour = alt.Color("kernel:N", scale=kernel_scales(kernels)[0], title="kernel")
    bars = (
        measured.mark_bar()
        .encode(y=tflops_axis(_HEIGHT), color=colour)
        .add_params(pick)
        .properties(name=PICKED)
    )
    spread = measured.mark_rule(color="#555555").encode(y="tflops_low:Q", y2="tflops_high:Q")
    words = (
        base.mark_text(angle=270, align="left", baseline="middle", dx=4, fontSize=8)
        .encode(y=alt.value(_HEIGHT), text="status:N")
        .transform_filter("!isValid(datum.tflops)")
    )
    width = max(240, 11 * len(subjects) * len(kernels))
    layered = alt.layer(bars, spread, words, data=alt.Data(values=values)).properties(
        width=width, height=_HEIGHT
    )
    order = [f"{panel}, {length} tokens" for panel in panels for length in lengths]
    panel = alt.Facet("facet:N", sort=order, header=panel_header())
    faceted = layered.facet(facet=panel, columns=1)
    return finish(faceted, title, [common_settings(cells), "bars: median; rules: p20 to p80 of latency"])
