"""Bars over patterns. A status without a number is a word where its bar would stand."""

from collections.abc import Sequence

import altair as alt

from longca.reporting.cells import cells_of
from longca.reporting.figures.data import cell_values, common_settings, in_order, inline
from longca.reporting.figures.encodings import PICKED, panel_header, pick_kernel, tflops_axis, tooltips
from longca.reporting.figures.theme import finish, kernel_scales
from longca.reporting.long import Row

_HEIGHT = 160
_WIDEST = 900
# Pixels of a bar beside which the words of a status can be read.
_WORD = 8


def over_patterns(rows: Sequence[Row], title: str) -> alt.TopLevelMixin:
    """Bars over patterns, a panel a pass and length; a status stands as a word or cross where its bar would."""
    cells = cells_of(rows)
    values = cell_values(cells)
    for row in values:
        row["facet"] = f"{row['panel']}, {row['seqlen']} tokens"
    panels, lengths = in_order(values, "panel"), sorted(in_order(values, "seqlen"))
    patterns, kernels = in_order(values, "pattern"), in_order(values, "kernel")
    subjects = in_order(sorted(values, key=lambda row: patterns.index(row["pattern"])), "subject")
    width = min(_WIDEST, max(240, 11 * len(subjects) * len(kernels)))
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
    without = base.encode(y=alt.value(_HEIGHT)).transform_filter("!isValid(datum.tflops)")
    if width / (len(subjects) * len(kernels)) < _WORD:
        said = without.mark_point(shape="cross", angle=45, filled=True, size=14, yOffset=-4).encode(
            color=colour
        )
        note = "crosses: no number; the tooltip and the table say why"
    else:
        said = without.mark_text(angle=270, align="left", baseline="middle", dx=4, fontSize=8).encode(
            text="status:N"
        )
        note = "words: no number"
    layered = alt.layer(bars, spread, said, data=inline(values)).properties(width=width, height=_HEIGHT)
    order = [f"{panel}, {length} tokens" for panel in panels for length in lengths]
    panel = alt.Facet("facet:N", sort=order, header=panel_header())
    faceted = layered.facet(facet=panel, columns=1)
    return finish(
        faceted, title, [*common_settings(cells), "bars: median; rules: p20 to p80 of latency", note]
    )
