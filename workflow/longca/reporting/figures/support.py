"""The support heat map: kernel x pattern, coloured by what was measured; the tooltip has the declaration."""

import re
import textwrap
from collections.abc import Sequence

import altair as alt

from longca.reporting.figures.data import in_order, inline
from longca.reporting.figures.encodings import panel_header
from longca.reporting.figures.theme import finish, status_scale
from longca.reporting.long import Row
from longca.reporting.words import SEVERITY, plain, words


def support_map(rows: Sequence[Row], title: str) -> alt.TopLevelMixin:
    """One square a kernel, pattern and pass; colour and text are the status that most needs an eye."""
    values = [
        {
            "kernel": row["kernel"],
            "pattern": row["pattern"],
            "panel": f"{row['family']}, {row['pass']}, {row['device_type']}",
            "status": _worst(row["measured"]),
            "declared": row["declared"],
            "measured": row["measured"],
            "lines": _lines(row["measured"]),
            "reason": plain("; ".join(filter(None, (row["declared_reason"], row["measured_reason"]))), 160),
        }
        for row in rows
    ]
    base = alt.Chart().encode(
        x=alt.X(
            "kernel:N",
            sort=in_order(values, "kernel"),
            title=None,
            axis=alt.Axis(labelAngle=-30, labelLimit=0),
        ),
        y=alt.Y("pattern:N", sort=in_order(values, "pattern"), title=None, axis=alt.Axis(labelLimit=0)),
        tooltip=[
            alt.Tooltip(f"{name}:N") for name in ("kernel", "pattern", "declared", "measured", "reason")
        ],
    )
    squares = base.mark_rect().encode(
        color=alt.Color(
            "status:N",
            scale=status_scale(in_order(values, "status")),
            title="measured",
            legend=alt.Legend(labelExpr=_LABEL, columns=2),
        )
    )
    # The words stand on coloured squares: dark on a light screen and a dark one.
    texts = base.mark_text(fontSize=9, lineHeight=9, color="#1A1A1A").encode(text="lines:N")
    layered = alt.layer(squares, texts, data=inline(values))
    layered = layered.properties(width=alt.Step(62), height=alt.Step(30))
    panel = alt.Facet("panel:N", sort=in_order(values, "panel"), header=panel_header())
    # Families differ in kernels and patterns: each panel has its own, and no empty rows of another's.
    faceted = layered.facet(facet=panel, columns=1).resolve_scale(x="independent", y="independent")
    return finish(faceted, title, ["what was measured; the tooltip says what is declared and why not"])


_LABEL = "replace(datum.label, /_/g, ' ')"


def _lines(measured: str) -> list[str]:
    """What a square says of its status that most needs an eye, in lines as long as the longest word."""
    first = measured.partition(",")[0]
    return textwrap.wrap(re.sub(r"(\d+) of (\d+)", r"\1/\2", first), len("unsupported"))


def _worst(measured: str) -> str:
    # `measured` names statuses as words, the one that most needs an eye first.
    return next(status for status in SEVERITY if measured.startswith(words(status)))
