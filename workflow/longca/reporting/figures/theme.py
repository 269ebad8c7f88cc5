"""The one theme of every figure: colours, shapes, sizes and what a kernel looks like everywhere."""

from collections.abc import Iterable, Sequence
from typing import Any

import altair as alt

from longca.kernels.registry import FAMILIES, kernel_names

# Palettes told apart by colour-blind readers: Okabe and Ito's, without its yellow (too pale) and black (the text's)
# and with two hues more, then, for the next eight kernels, Paul Tol's muted, then the first again, darker.
PALETTE = (
    *("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#7F6A00", "#5B4B8A"),
    *("#332288", "#999933", "#44AA99", "#882255", "#AA4499", "#6E6E6E", "#117733", "#CC6677"),
    *("#003F62", "#7F5700", "#00573F", "#753400", "#70435C", "#2F6380", "#463A00", "#32294C"),
)
# Shapes and dashes tell kernels apart where colours cannot, as in grey print: a hue comes with a shape and a dash once.
SHAPES = (
    "circle",
    "square",
    "triangle-up",
    "diamond",
    "triangle-down",
    "cross",
    "triangle-right",
    "triangle-left",
)

DASHES = ([1, 0], [6, 2], [2, 2])
_HUES = 8

# Statuses from good to bad: light where nothing was asked or known, never red beside green.
STATUS_COLOURS = {
    "ok": "#56B4E9",
    "unsupported": "#D9D9D9",
    "missing": "#BFBFBF",
    "out_of_memory": "#E69F00",
    "timeout": "#F0C75E",
    "fallback": "#CC79A7",
    "crashed": "#A65628",
    "wrong": "#D55E00",
    "not measured": "#F2F2F2",
}

CONFIG: dict[str, Any] = {
    "background": "white",
    "font": "Helvetica, Arial, sans-serif",
    "axis": {"labelFontSize": 10, "titleFontSize": 11, "titleFontWeight": "normal", "gridColor": "#E6E6E6"},
    "header": {"labelFontSize": 11, "labelFontWeight": "bold", "title": None},
    "legend": {
        "labelFontSize": 11,
        "titleFontSize": 11,
        "titleFontWeight": "normal",
        "orient": "top",
        "symbolSize": 90,
        "labelLimit": 0,
    },
    "title": {
        "fontSize": 13,
        "anchor": "start",
        "subtitleFontSize": 11,
        "subtitleColor": "#555555",
        "offset": 12,
    },
    "view": {"stroke": "#D0D0D0"},
    "text": {"color": "#444444"},
    "rect": {"stroke": "white", "strokeWidth": 2},
    "point": {"opacity": 1},
}

# What the report and the HTML figures lay over CONFIG where the reader's screen is dark.
DARK: dict[str, Any] = {
    "background": "transparent",
    "axis": {
        "labelColor": "#C9CED6",
        "titleColor": "#E4E7EB",
        "gridColor": "#3A414B",
        "domainColor": "#78818D",
    },
    "header": {"labelColor": "#E4E7EB"},
    "legend": {"labelColor": "#E4E7EB", "titleColor": "#E4E7EB"},
    "title": {"color": "#F3F4F6", "subtitleColor": "#AEB6C1"},
    "view": {"stroke": "#4A525E"},
    "text": {"color": "#C9CED6"},
    "rect": {"stroke": "#181C22"},
}


def kernel_scales(kernels: Iterable[str]) -> tuple[alt.Scale, alt.Scale, alt.Scale]:
    """The colour, shape and dash of each kernel, by its place in the registry: the same in every figure."""
    registered = dict.fromkeys(name for family in FAMILIES for name in kernel_names(family))
    # A kernel of older results that is no longer registered comes after all that are.
    shown = list(dict.fromkeys(kernels))
    order = list(dict.fromkeys((*registered, *shown)))
    places = [order.index(name) for name in shown]
    return (
        alt.Scale(domain=shown, range=[PALETTE[place % len(PALETTE)] for place in places]),
        alt.Scale(domain=shown, range=[SHAPES[(place + place // _HUES) % len(SHAPES)] for place in places]),
        alt.Scale(domain=shown, range=[DASHES[place // _HUES % len(DASHES)] for place in places]),
    )


def status_scale(statuses: Iterable[str]) -> alt.Scale:
    """The colour of each of these statuses, from good to bad."""
    seen = set(statuses)
    shown = {status: colour for status, colour in STATUS_COLOURS.items() if status in seen}
    return alt.Scale(domain=list(shown), range=list(shown.values()))


def finish(chart: alt.TopLevelMixin, title: str, subtitle: Sequence[str] = ()) -> alt.TopLevelMixin:
    """Give a chart its title and the theme."""
    heading = alt.TitleParams(title, subtitle=list(subtitle)) if subtitle else alt.TitleParams(title)
    return chart.properties(title=heading).configure(**CONFIG)
