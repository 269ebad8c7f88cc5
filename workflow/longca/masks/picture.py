"""A mask as a picture: every slice a polygon, queries downwards, keys to the right."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import altair as alt
import vl_convert

from longca.errors import LongcaError
from longca.files import write_atomically
from longca.masks.slices import Slice, band, row_bounds

SUFFIXES = (".svg", ".png", ".pdf")
MOST_SLICES = 50_000
# Slices up to this many rows show every cell's corner; beyond, an edge is a line, half a cell off.
_STAIRS = 64
_SIZE = 320
_PNG_SCALE = 2
_LEGEND = alt.Legend(title=None, orient="bottom", symbolType="square", symbolStrokeWidth=6)
# Okabe and Ito's palette, told apart by colour-blind readers.
_COLOURS = {"full": "#0072B2", "causal": "#009E73", "inv_causal": "#E69F00", "bi_causal": "#CC79A7"}


def draw_picture(
    slices: Sequence[Slice], queries: int, keys: int, title: str, subtitle: str, path: Path
) -> None:
    """Write the picture as SVG, PNG or PDF, by the suffix of `path`, in one rename.

    Raises:
        LongcaError: for another suffix, or more slices than a picture can show.
    """
    if path.suffix not in SUFFIXES:
        raise LongcaError(f"{path}: a picture's suffix must be one of {', '.join(SUFFIXES)}")
    if len(slices) > MOST_SLICES:
        raise LongcaError(f"{path}: {len(slices)} slices; a picture shows at most {MOST_SLICES}")
    chart = _chart(slices, queries, keys, alt.TitleParams(title, subtitle=subtitle)).to_dict()
    if path.suffix == ".svg":
        write_atomically(path, vl_convert.vegalite_to_svg(chart))
    elif path.suffix == ".png":
        write_atomically(path, vl_convert.vegalite_to_png(chart, scale=_PNG_SCALE))
    else:
        write_atomically(path, vl_convert.vegalite_to_pdf(chart))


def outline(piece: Slice) -> list[tuple[int, int]]:
    """Corners (key, query) of the kept cells, once around."""
    left, right = row_bounds(piece)
    stairs = (left, right) != (None, None) and piece.q1 - piece.q0 <= _STAIRS
    if stairs:
        # Both corners of a stair have the bounds of its row; along a line the bounds move with the corner.
        edges = [(edge, row) for row in range(piece.q0, piece.q1) for edge in (row, row + 1)]
    else:
        edges = [(piece.q0, piece.q0), (piece.q1, piece.q1)]
    first = [(piece.k0 if left is None else row + left, edge) for edge, row in edges]
    end = [(piece.k1 if right is None else row + right + stairs, edge) for edge, row in edges]
    return [*end, *reversed(first)]


def _chart(slices: Sequence[Slice], queries: int, keys: int, title: alt.TitleParams) -> alt.Chart:
    # `band` cuts off rows that keep nothing, and bounds that leave the slice.
    parts = [part for piece in slices for part in band(*piece[:4], *row_bounds(piece))]
    corners: list[dict[str, Any]] = [
        {"slice": number, "corner": corner, "key": key, "query": query, "type": part.type}
        for number, part in enumerate(parts)
        for corner, (key, query) in enumerate(outline(part))
    ]
    shown = [kind for kind in _COLOURS if any(part.type == kind for part in parts)]
    scale = alt.Scale(domain=shown, range=[_COLOURS[kind] for kind in shown])
    colour = alt.Color("type:N", scale=scale, legend=_LEGEND)
    return (
        alt.Chart(alt.Data(values=corners), title=title, width=_SIZE, height=_SIZE * queries / keys)
        .mark_line(filled=True, interpolate="linear-closed", strokeWidth=0.5)
        .encode(
            x=alt.X("key:Q", scale=alt.Scale(domain=[0, keys], nice=False), axis=_axis("key")),
            y=alt.Y("query:Q", scale=alt.Scale(domain=[queries, 0], nice=False), axis=_axis("query")),
            detail="slice:N",
            order="corner:Q",
            color=colour,
            stroke=colour,
        )
        .configure_view(stroke="#888888")
        .configure_title(anchor="start", fontSize=14, subtitleColor="#555555")
    )


def _axis(title: str) -> alt.Axis:
    return alt.Axis(title=title, grid=False, tickCount=5, orient="top" if title == "key" else "left")
