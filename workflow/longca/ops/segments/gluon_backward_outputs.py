"""How the backward's gradients leave a warpgroup: dQ each step, dK and dV once an item."""

# ruff: noqa: N803, N806
# mypy: ignore-errors

import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language import _core


@_core.builtin
def tma_reduce_add(desc, coord, source, _semantic=None):
    """cp.reduce.async.bulk.tensor .add: Gluon's builder has it, its Python names lack it in Triton 3.6."""
    coord = _semantic._convert_to_ir_values(coord, require_i64=False)
    _semantic.builder.create_async_tma_reduce(
        triton._C.libtriton.ir.DESCRIPTOR_REDUCE_KIND.ADD, desc.handle, coord, source.handle
    )


@gluon.jit
def fragments(dq):
    """dq [64, 64] as 128 lines of 32: what a thread holds of a row in 16 bytes, eight threads a line.

    Stores without bank conflicts, four numbers each; rows 4i to 4i + 3 are lines 8i to 8i + 7.
    elementwise.finish_fragments_kernel undoes it.
    """
    # row: warp, half, block, row in block (2 bits); column: 16s, 8s, pair, one of a pair
    x = dq.reshape([4, 2, 2, 2, 2, 4, 2, 4, 2]).permute((0, 1, 2, 5, 3, 4, 7, 6, 8))
    return x.reshape([128, 32])


@gluon.jit
def store(dk, dv, dk_out, dv_out, parts, plan, item, WG: gl.constexpr, SCALE: gl.constexpr, D: gl.constexpr):
    O_LAYOUT: gl.constexpr = dk.type.layout
    STORE: gl.constexpr = gl.BlockedLayout([1, 8], [256 // D, D // 8], [4, 1], [1, 0])
    row0 = gl.load(item)
    row1 = gl.load(item + 1)
    kv = gl.load(item + 2)
    slot = gl.load(item + 8)
    if slot < 0:
        row = row0 + WG * 64 + gl.arange(0, 64, gl.SliceLayout(1, STORE))
        column = gl.arange(0, D, gl.SliceLayout(0, STORE))
        at = (kv * gl.load(plan + 5) + row[:, None]).to(gl.int64) * D + column[None, :]
        inside = (row < row1)[:, None]
        gl.store(dk_out + at, gl.convert_layout((dk * SCALE).to(dk_out.dtype.element_ty), STORE), mask=inside)
        gl.store(dv_out + at, gl.convert_layout(dv.to(dk_out.dtype.element_ty), STORE), mask=inside)
    else:
        part_row = WG * 64 + gl.arange(0, 64, gl.SliceLayout(1, O_LAYOUT))
        part_column = gl.arange(0, D, gl.SliceLayout(0, O_LAYOUT))
        part_at = slot.to(gl.int64) * (2 * 128 * D) + part_row[:, None] * D + part_column[None, :]
        gl.store(parts + part_at, dk)
        gl.store(parts + part_at + 128 * D, dv)
