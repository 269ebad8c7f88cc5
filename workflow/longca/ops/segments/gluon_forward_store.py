"""Storing what a warpgroup of the forward has of 64 query rows."""

# ruff: noqa: N803, N806, E741
# mypy: ignore-errors

from triton.experimental import gluon
from triton.experimental.gluon import language as gl


@gluon.constexpr_function
def _store_layout(D):
    """16 bytes of a row a thread, 64 a row of four threads, from registers of the same warp."""
    registers = [[0, 1], [0, 2], [0, 4], [8, 0], [0, 32]] + ([[0, 64]] if D == 128 else [])
    return gl.DistributedLinearLayout(
        registers, [[0, 8], [0, 16], [1, 0], [2, 0], [4, 0]], [[16, 0], [32, 0]], [], [64, D]
    )


@gluon.jit
def store(o, m, l, out, lse, plan, item, lane, WG: gl.constexpr, D: gl.constexpr):
    O_LAYOUT: gl.constexpr = o.type.layout
    STORE: gl.constexpr = _store_layout(D)
    row0 = gl.load(item)
    row1 = gl.load(item + 1)
    line = gl.load(item + 2) * gl.load(plan + 4)
    inverse = gl.where(l > 0, 1.0 / l, 0.0)
    o = o * gl.convert_layout(inverse, gl.SliceLayout(1, O_LAYOUT))[:, None]
    gl.store(lse + line + row0 + lane, (m + gl.log2(l)) * 0.6931471805599453, mask=row0 + lane < row1)
    row = row0 + WG * 64 + gl.arange(0, 64, gl.SliceLayout(1, STORE))
    column = gl.arange(0, D, gl.SliceLayout(0, STORE))
    target = out + (line + row[:, None]).to(gl.int64) * D + column[None, :]
    gl.store(target, gl.convert_layout(o.to(out.dtype.element_ty), STORE), mask=(row < row1)[:, None])
