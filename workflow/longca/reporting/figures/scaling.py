"""Throughput a rank over the number of ranks, beside one rank alone."""

from collections.abc import Sequence
from typing import Any

import altair as alt

from longca.parallel.registry import MECHANISMS
from longca.reporting.cells import Cell, cells_of
from longca.reporting.figures.data import cell_values, common_settings, in_lines, in_order, inline
from longca.reporting.figures.encodings import PICKED, panel_header, pick_kernel, tflops_axis, tooltips
from longca.reporting.figures.theme import PALETTE, SHAPES, finish
from longca.reporting.long import Row
from longca.reporting.mechanisms import as_mechanisms, efficiency, is_alone, local_kernel

_HEIGHT, _BAND = 150, 14
_NOTES = (
    "points: median of the slowest rank; bars: p20 to p80; dashed rule: one rank alone with as many tokens",
    "crosses below the scale: no number; the tooltip and the table say why",
)


def scaling(rows: Sequence[Row], title: str) -> alt.TopLevelMixin:
    """Lines over ranks, a panel a pattern, pass and tokens a rank; a horizontal line is ideal."""
    cells = cells_of(as_mechanisms(rows))
    pairs = [(cell, _value(cell, row)) for cell, row in zip(cells, cell_values(cells), strict=True)]
    alone = {
        (row["facet"], row["local"]): row["tflops"]
        for cell, row in pairs
        if is_alone(cell) and "tflops" in row
    }
    shown = [row for cell, row in pairs if not is_alone(cell)] or [row for _, row in pairs]
    for row in shown:
        if (row["facet"], row["local"]) in alone:
            row["alone"] = alone[row["facet"], row["local"]]
    panel = alt.Facet("facet:N", sort=in_order(shown, "facet"), header=panel_header())
    faceted = _panels(shown).facet(facet=panel, columns=3)
    return finish(faceted, title, [*common_settings(cells), *_NOTES])


def _value(cell: Cell, row: dict[str, Any]) -> dict[str, Any]:
    place, share = cell.place, efficiency(cell)
    tokens = place.seqlen // place.ranks
    said = {
        "ranks": place.ranks,
        "local": local_kernel(cell),
        "efficiency": None if share is None else round(share, 4),
    }
    row |= {name: value for name, value in said.items() if value is not None}
    row["facet"] = in_lines(row["subject"], f"{row['panel']}, {tokens} tokens a rank")
    return row


def _panels(values: list[dict[str, Any]]) -> Any:
    labels = in_order(values, "kernel")
    colours, shapes = by_mechanism(labels)
    ranks = sorted(in_order(values, "ranks"))
    scale = alt.Scale(type="log", base=2, domain=[ranks[0] / 1.25, ranks[-1] * 1.25], nice=False)
    axis = alt.Axis(values=ranks, labelExpr="format(datum.value, 'd')", grid=False)
    pick = pick_kernel()
    base = alt.Chart().encode(
        x=alt.X("ranks:Q", scale=scale, axis=axis, title="ranks (log scale)"),
        color=alt.Color("kernel:N", scale=colours, title="mechanism"),
        opacity=alt.condition(pick, alt.value(1), alt.value(0.15)),
    )
    y = tflops_axis(_HEIGHT - _BAND)
    more = [alt.Tooltip(name, type="quantitative", title=name) for name in ("ranks", "efficiency")]
    tips = [*tooltips(values), *more]
    measured = base.transform_filter("isValid(datum.tflops)")
    ideal = (
        alt.Chart().mark_rule(strokeDash=[4, 3], color="#777777").encode(y="mean(alone):Q", detail="local:N")
        .transform_filter("isValid(datum.alone)")
    )  # fmt: skip
    spread = measured.mark_rule().encode(y="tflops_low:Q", y2="tflops_high:Q")
    lines = measured.mark_line(strokeWidth=1.5).encode(y=y).add_params(pick).properties(name=PICKED)
    points = measured.mark_point(filled=True, size=38).encode(
        y=y, shape=alt.Shape("kernel:N", scale=shapes, title="mechanism"), tooltip=tips
    )
    crosses = (
        base.mark_point(shape="cross", angle=45, filled=True, size=60)
        .encode(y=alt.value(_HEIGHT - _BAND / 2), tooltip=tips)
        .transform_filter("!isValid(datum.tflops)")
    )
    layered = alt.layer(lines, ideal, spread, points, crosses, data=inline(values))
    return layered.properties(width=200, height=_HEIGHT)


def by_mechanism(labels: Sequence[str]) -> tuple[alt.Scale, alt.Scale]:
    """The colour and the shape of each mechanism, or of its arrangements."""
    return _scale(labels, PALETTE), _scale(labels, SHAPES)


def _scale(labels: Sequence[str], choices: Sequence[str]) -> alt.Scale:
    """A mechanism's colour or shape is the same in every figure; its arrangements take the ones after it."""
    order = [*MECHANISMS]
    first = {label: order.index(label.split()[0]) for label in labels if label.split()[0] in order}
    taken: set[int] = set()
    chosen = []
    for label in labels:
        place = first.get(label, len(order))
        while place % len(choices) in taken and len(taken) < len(choices):
            place += 1
        taken.add(place % len(choices))
        chosen.append(choices[place % len(choices)])
    return alt.Scale(domain=list(labels), range=chosen)
