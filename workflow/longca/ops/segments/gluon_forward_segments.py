"""What a warpgroup of the forward reads of an item's segments, and the cells of a step that a row keeps."""

# ruff: noqa: N803
# mypy: ignore-errors

from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.jit
def item_segments(item, WHOLE: gl.constexpr):
    """The first and the end of an item's segments. Where all steps are whole they are walked as one."""
    if WHOLE:
        return 0, 1
    else:
        return gl.load(item + 3), gl.load(item + 4)


@gluon.jit
def read_segment(plan, item, index, lane, SEGMENT: gl.constexpr, WHOLE: gl.constexpr):
    """First column, steps, the range of whole steps; each row's first column and columns.

    WHOLE: only steps count, and are those of the item.
    """
    if WHOLE:
        return 0, gl.load(item + 5), 0, 0, lane, lane
    else:
        seg = plan + gl.load(plan + 1) + index * SEGMENT
        bound = gl.load(seg + 4) + lane * gl.load(seg + 5)
        low = gl.load(plan + gl.load(plan + 2) + bound)
        width = gl.load(plan + gl.load(plan + 3) + bound) - low
        return gl.load(seg), gl.load(seg + 1), gl.load(seg + 2), gl.load(seg + 3), low, width


@gluon.jit
def inside(column, low, width):
    """low <= column < low + width, as one unsigned compare."""
    return (column[None, :] - low[:, None]).to(gl.uint32) < width.to(gl.uint32)[:, None]
