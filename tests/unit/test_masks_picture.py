"""Pictures: each slice's outline encloses the cells it keeps."""

import numpy as np
import pytest
from hypothesis import given, settings
from masks_strategy import bands, cells

from longca.errors import LongcaError
from longca.masks.picture import MOST_SLICES, draw_picture, outline
from longca.masks.slices import Slice, band


def enclosed(corners) -> float:
    """Area of a polygon, by its corners."""
    x, y = np.array(corners).T
    return abs(x @ np.roll(y, 1) - y @ np.roll(x, 1)) / 2


def inside(corners, key, query) -> bool:
    """Whether a point lies in the polygon: a ray from it crosses the outline an odd number of times."""
    crossings = 0
    for (x0, y0), (x1, y1) in zip(corners, corners[1:] + corners[:1], strict=True):
        if (y0 > query) != (y1 > query):
            crossings += key < x0 + (query - y0) * (x1 - x0) / (y1 - y0)
    return crossings % 2 == 1


@settings(max_examples=60, deadline=None)
@given(bands())
def test_outline_of_a_small_slice_is_that_of_its_cells(drawn):
    arguments, queries, keys = drawn
    for piece in band(*arguments):
        corners, kept = outline(piece), cells([piece], queries, keys)
        assert enclosed(corners) == kept.sum()
        for query, key in np.ndindex(queries, keys):
            assert inside(corners, key + 0.5, query + 0.5) == kept[query, key]


@pytest.mark.parametrize(
    ("piece", "corners"),
    [
        (Slice(0, 500, 10, 20, "full"), [(20, 0), (20, 500), (10, 500), (10, 0)]),
        (Slice(0, 500, 0, 600, "causal"), [(100, 0), (600, 500), (0, 500), (0, 0)]),
        (Slice(0, 500, 0, 600, "inv_causal"), [(600, 0), (600, 500), (500, 500), (0, 0)]),
        (Slice(0, 500, 0, 600, "bi_causal"), [(100, 0), (600, 500), (500, 500), (0, 0)]),
    ],
)
def test_outline_of_a_large_slice_has_straight_edges(piece, corners):
    assert outline(piece) == corners


def test_picture_has_one_polygon_a_slice(tmp_path):
    slices = [Slice(0, 3, 0, 3, "causal"), Slice(3, 9, 3, 9, "full"), Slice(0, 3, 5, 9, "full")]
    draw_picture(slices, 9, 9, "a <mask>", "9 tokens & more", tmp_path / "mask.svg")
    text = (tmp_path / "mask.svg").read_text()
    assert text.count('aria-roledescription="line mark"') == 3
    assert "a &lt;mask>" in text or "a &lt;mask&gt;" in text


def test_picture_of_too_many_slices_is_refused(tmp_path):
    slices = [Slice(row, row + 1, 0, 1, "full") for row in range(MOST_SLICES + 1)]
    with pytest.raises(LongcaError, match=f"{MOST_SLICES + 1} slices; a picture shows at most {MOST_SLICES}"):
        draw_picture(slices, len(slices), 1, "many", "", tmp_path / "mask.svg")
    assert not list(tmp_path.iterdir())
