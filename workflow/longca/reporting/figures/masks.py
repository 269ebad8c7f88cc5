"""Each pattern's picture, drawn from a study's own mask files: every slice a polygon, whatever its size."""

from typing import Any

import altair as alt

from longca.masks.mask import Mask, read_mask
from longca.masks.slices import Slice, row_bounds
from longca.reporting.figures.data import inline
from longca.reporting.figures.theme import PALETTE, finish
from longca.reporting.names import pictured_masks
from longca.study.model import Study


def masks(study: Study, title: str) -> alt.TopLevelMixin:
    """Small multiples of the masks of `pictured_masks`, queries downwards, keys to the right."""
    pictures = [_picture(read_mask(file)) for file in pictured_masks(study)]
    values = [row for picture in pictures for row in picture]
    size = max(row["key"] for row in values) if values else 1
    areas = (
        alt.Chart(inline(values), width=120, height=120)
        .mark_area(color=PALETTE[0], opacity=1, stroke=PALETTE[0], strokeWidth=0.5)
        .encode(
            x=alt.X("key:Q", title="key", scale=alt.Scale(domain=[0, size], nice=False), axis=_axis(size)),
            y=alt.Y(
                "first:Q", title="query", scale=alt.Scale(domain=[size, 0], nice=False), axis=_axis(size)
            ),
            y2="last:Q",
            detail="slice:N",
        )
    )
    faceted = areas.facet(
        facet=alt.Facet("pattern:N", sort=[p[0]["pattern"] for p in pictures if p]), columns=4
    )
    return finish(faceted, title, [f"kept cells in colour; {size} tokens, sample 0"])


def polygon(piece: Slice) -> list[tuple[float, float, float]]:
    """The corners of a slice as (key, first query kept, last query kept), by rising key.

    Cells are points here: a diagonal of cells is a straight line, half a cell off at most.
    """
    left, right = row_bounds(piece)
    # Query i keeps keys from i + left to i + right; so key j is kept by queries from j - right to j - left.
    first = (lambda key: piece.q0) if right is None else (lambda key: max(piece.q0, key - right))
    last = (lambda key: piece.q1) if left is None else (lambda key: min(piece.q1, key - left))
    corners = {piece.k0, piece.k1}
    corners |= {piece.q0 + right, piece.q1 + right} if right is not None else set()
    corners |= {piece.q0 + left, piece.q1 + left} if left is not None else set()
    inside = sorted(corner for corner in corners if piece.k0 <= corner <= piece.k1)
    return [(key, first(key), last(key)) for key in inside if first(key) <= last(key)]


def _picture(mask: Mask) -> list[dict[str, Any]]:
    return [
        {"pattern": mask.pattern, "slice": number, "key": key, "first": first, "last": last}
        for number, piece in enumerate(mask.slices)
        for key, first, last in polygon(piece)
    ]


def _axis(size: float) -> alt.Axis:
    return alt.Axis(values=[0, size / 2, size], grid=False, format="d", labelFontSize=8)
