"""Modelled throughput a GPU over the number of GPUs: hollow points, for none of them was measured."""

from collections.abc import Callable, Sequence
from typing import Any

import altair as alt

from longca.reporting.figures.data import in_lines, in_order, inline
from longca.reporting.figures.encodings import PICKED, panel_header, pick_kernel, tflops_axis
from longca.reporting.figures.menus import chosen_settings, menus_of, with_menus
from longca.reporting.figures.scaling import by_mechanism
from longca.reporting.figures.theme import finish
from longca.reporting.long import Row
from longca.reporting.scale.sections import topology_text

_HEIGHT = 150
# What tells questions apart beside pattern and pass.
_SETTINGS: dict[str, Callable[[Row], Any]] = {
    "local_kernel": lambda row: row["kernel"],
    "heads": lambda row: f"{row['q_heads']}-{row['kv_heads']}",
    "cluster": lambda row: row["cluster"],
    "tokens": lambda row: row["tokens_per_rank"],
}
_NOTES = (
    "hollow points: modelled, not measured; constants between nodes are assumed",
    "each mechanism on its best topology, named in the tooltip",
)


def projection(rows: Sequence[Row], title: str) -> alt.TopLevelMixin:
    """Lines over GPUs (log2), a panel a cluster, pattern, pass and tokens a GPU."""
    values = _values([row for row in rows if row["tflops"] is not None])
    if not values:
        empty = alt.Chart(inline([])).mark_text().encode(text=alt.value("nothing is measured yet"))
        return finish(empty, title, list(_NOTES))
    ranks = sorted(in_order(values, "ranks"))
    labels = in_order(values, "kernel")
    scale = alt.Scale(type="log", base=2, domain=[ranks[0] / 1.25, ranks[-1] * 1.25], nice=False)
    axis = alt.Axis(values=ranks, labelExpr="format(datum.value, 'd')", grid=False, labelOverlap=True)
    pick = pick_kernel()
    tips = [
        alt.Tooltip(name, type="nominal" if name in ("kernel", "topology") else "quantitative", title=said)
        for name, said in (
            ("kernel", "mechanism (modelled)"),
            ("topology", "U x R"),
            ("ranks", "GPUs"),
            ("tflops", "modelled TFLOP/s a GPU"),
            ("efficiency", "modelled efficiency"),
        )
    ]
    base = alt.Chart().encode(
        x=alt.X("ranks:Q", scale=scale, axis=axis, title="GPUs (log scale)"),
        y=tflops_axis(_HEIGHT),
        color=alt.Color("kernel:N", scale=by_mechanism(labels)[0], title="mechanism"),
        opacity=alt.condition(pick, alt.value(1), alt.value(0.15)),
    )
    lines = base.mark_line(strokeWidth=1, strokeDash=[3, 3])
    points = (
        base.mark_point(filled=False, size=40)
        .encode(shape=alt.Shape("kernel:N", scale=by_mechanism(labels)[1], title="mechanism"), tooltip=tips)
        .add_params(pick)
        .properties(name=PICKED)
    )
    layered = alt.layer(lines, points, data=inline(values)).properties(width=200, height=_HEIGHT)
    panel = alt.Facet("facet:N", sort=in_order(values, "facet"), header=panel_header())
    faceted = layered.facet(facet=panel, columns=3)
    chosen = [name for name in _SETTINGS if name in values[0]]
    return finish(with_menus(faceted, menus_of(values, chosen, "tflops")), title, list(_NOTES))


def _values(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """A row a mechanism that can run; settings that are chosen from a menu are columns, others the panel's title."""
    if not rows:
        return []
    settings = [{name: of(row) for name, of in _SETTINGS.items()} for row in rows]
    chosen = chosen_settings(settings, [(row["pattern"], row["pass"]) for row in rows])
    several_heads = len({row["heads"] for row in settings}) > 1
    return [
        {
            "kernel": row["mechanism"],
            "ranks": row["world_size"],
            "tflops": round(row["tflops"], 1),
            "efficiency": round(row["efficiency"], 3),
            "topology": topology_text(row),
            "facet": _panel(row, {n: v for n, v in own.items() if n not in chosen}, several_heads),
            **{name: own[name] for name in chosen},
        }
        for row, own in zip(rows, settings, strict=True)
    ]


def _panel(row: Row, shown: dict[str, Any], several_heads: bool) -> str:
    first = [row["pattern"], *([shown["cluster"]] if "cluster" in shown else [])]
    second = [*([shown["local_kernel"]] if "local_kernel" in shown else []), row["pass"]]
    second += [f"heads {shown['heads']}"] if several_heads and "heads" in shown else []
    second += [f"{shown['tokens']} tokens a GPU"] if "tokens" in shown else []
    return in_lines(", ".join(first), ", ".join(second))
