"""The small kernels around a backward: before it, after it, and the sum of its split parts."""

# ruff: noqa: N803
# mypy: ignore-errors
import triton
import triton.language as tl


@triton.jit
def prepare_kernel(
    out,
    dout,
    lse,
    stat,
    dq,
    q_rows,
    dq_rows,
    stat_rows,
    stat_size,
    inverse_scale,
    BLOCK: tl.constexpr,
    D: tl.constexpr,
):
    """What the sums of a backward's two score products start from, and dQ cleared.

    stat[0] = -lse / scale, so that exp2 of the scaled sum is the softmax; 0 where a row is empty,
    whose cells are all masked. stat[1] = -rowsum(out * dout).
    """
    row = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    base = tl.program_id(1) * q_rows
    at = (base + row[:, None]).to(tl.int64) * D + tl.arange(0, D)[None, :]
    line = stat + tl.program_id(1) * stat_rows + row
    inside = row < q_rows
    o = tl.load(out + at, mask=inside[:, None], other=0.0).to(tl.float32)
    d = tl.load(dout + at, mask=inside[:, None], other=0.0).to(tl.float32)
    value = tl.load(lse + base + row, mask=inside, other=0.0)
    start = tl.where(value == float("-inf"), 0.0, -value * inverse_scale)
    tl.store(line, start, mask=row < stat_rows)
    tl.store(line + stat_size, -tl.sum(o * d, 1), mask=row < stat_rows)
    to = (tl.program_id(1) * dq_rows + row[:, None]).to(tl.int64) * D + tl.arange(0, D)[None, :]
    tl.store(dq + to, tl.zeros([BLOCK, D], tl.float32), mask=(row < dq_rows)[:, None])


@triton.jit
def finish_kernel(summed, dq, scale, size, BLOCK: tl.constexpr):
    """dq = scale * summed, in dq's dtype."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < size
    tl.store(dq + at, (tl.load(summed + at, mask=inside) * scale).to(dq.dtype.element_ty), mask=inside)


@triton.jit
def finish_fragments_kernel(summed, dq, scale, q_rows, dq_rows, ROWS: tl.constexpr, D: tl.constexpr):
    """dq = scale * summed, in dq's dtype and order; `summed` is as the Hopper kernel's fragments leave it.

    summed fp32 [heads, dq_rows / 4, 8 lines, D / 64, 32]: see gluon_backward_consumer._fragments.
    """
    block = tl.program_id(0) * (ROWS // 4) + tl.arange(0, ROWS // 4)
    base = tl.program_id(1).to(tl.int64) * dq_rows * D
    at = base + block[:, None] * (4 * D) + tl.arange(0, 4 * D)[None, :]
    x = tl.load(summed + at, mask=(block * 4 < dq_rows)[:, None])
    x = (x * scale).to(dq.dtype.element_ty)
    # columns' 16s, row (2 bits), half, row (1 bit), pair, 8s, one of a pair
    x = tl.reshape(x, [ROWS // 4, 4, 2, D // 64, 2, 4, 2, 2])
    x = tl.reshape(tl.permute(x, (0, 2, 4, 3, 1, 6, 5, 7)), [ROWS, D])
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    to = (tl.program_id(1) * q_rows + row[:, None]).to(tl.int64) * D + tl.arange(0, D)[None, :]
    tl.store(dq + to, x, mask=(row < q_rows)[:, None])


@triton.jit
def add_parts_kernel(
    splits, parts, dk, dv, k_rows, scale, TILE: tl.constexpr, ROWS: tl.constexpr, D: tl.constexpr
):
    """Adds the fp32 parts of the key tiles whose query heads were dealt to several programs."""
    entry = splits + tl.program_id(0) * 4
    head, row0, slot, slots = tl.load(entry), tl.load(entry + 1), tl.load(entry + 2), tl.load(entry + 3)
    which = tl.program_id(1)
    row = tl.program_id(2) * ROWS + tl.arange(0, ROWS)
    at = row[:, None] * D + tl.arange(0, D)[None, :]
    total = tl.zeros([ROWS, D], tl.float32)
    for i in range(slots):
        total += tl.load(parts + (slot + i).to(tl.int64) * (2 * TILE * D) + which * (TILE * D) + at)
    line = (head * k_rows + row0 + row[:, None]).to(tl.int64)
    target = line * D + tl.arange(0, D)[None, :]
    inside = (row0 + row < k_rows)[:, None]
    if which == 0:
        tl.store(dk + target, (total * scale).to(dk.dtype.element_ty), mask=inside)
    else:
        tl.store(dv + target, total.to(dv.dtype.element_ty), mask=inside)
