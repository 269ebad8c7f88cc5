"""The portable backward kernel: one program an item, five products a step, dQ summed by atomics."""

# ruff: noqa: N803
# mypy: ignore-errors
import triton
import triton.language as tl


@triton.jit
def _steps(
    k,
    v,
    dk,
    dv,
    q_desc,
    do_desc,
    dq,
    starts,
    deltas,
    q_row,
    first,
    begin,
    end,
    skip_at,
    skip,
    low,
    high,
    rows,
    q_rows,
    scale2,
    MASKED: tl.constexpr,
    BLOCK_M: tl.constexpr,
    D: tl.constexpr,
    STAGES: tl.constexpr,
    TMA_REDUCE: tl.constexpr,
    SUM_QUERIES: tl.constexpr,
):
    for i in tl.range(begin, end, num_stages=STAGES):
        row = first + i * BLOCK_M
        if MASKED:
            row = first + tl.where(i < skip_at, i, i + skip) * BLOCK_M
        r = row + rows
        q = q_desc.load([q_row + row, 0])
        start = tl.load(starts + r, mask=r < q_rows, other=0.0)
        pt = tl.math.exp2((tl.dot(k, q.T) + start[None, :]) * scale2)
        if MASKED:
            pt = tl.where((r[None, :] >= low[:, None]) & (r[None, :] < high[:, None]), pt, 0.0)
        do = do_desc.load([q_row + row, 0])
        dv = tl.dot(pt.to(q.dtype), do, dv)
        delta = tl.load(deltas + r, mask=r < q_rows, other=0.0)
        dst = (pt * (tl.dot(v, do.T) + delta[None, :])).to(q.dtype)
        dk = tl.dot(dst, q, dk)
        if SUM_QUERIES:
            dq_part = tl.dot(dst.T, k)
            if TMA_REDUCE:
                dq.atomic_add([q_row + row, 0], dq_part)
            else:
                at = (q_row + r).to(tl.int64)[:, None] * D + tl.arange(0, D)[None, :]
                tl.atomic_add(dq + at, dq_part, mask=(r < q_rows)[:, None], sem="relaxed")
    return dk, dv


@triton.jit
def backward_kernel(
    q_desc,
    do_desc,
    k_desc,
    v_desc,
    starts,
    deltas,
    dq,
    dk_out,
    dv_out,
    parts,
    plan,
    q_rows,
    k_rows,
    stat_rows,
    scale2,
    scale,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    D: tl.constexpr,
    STAGES: tl.constexpr,
    TMA_REDUCE: tl.constexpr,
    SUM_QUERIES: tl.constexpr,
    ITEM: tl.constexpr,
    SEGMENT: tl.constexpr,
    HEADER: tl.constexpr,
):
    item = plan + tl.load(plan) + tl.load(plan + HEADER + tl.program_id(0) * 2) * ITEM
    row0, row1, kv, slot = tl.load(item), tl.load(item + 1), tl.load(item + 2), tl.load(item + 8)
    lane, rows = tl.arange(0, BLOCK_N), tl.arange(0, BLOCK_M)
    k = k_desc.load([kv * k_rows + row0, 0])
    v = v_desc.load([kv * k_rows + row0, 0])
    dk = tl.zeros([BLOCK_N, D], tl.float32)
    dv = tl.zeros([BLOCK_N, D], tl.float32)
    for head in range(tl.load(item + 6), tl.load(item + 6) + tl.load(item + 7)):
        stat = head * stat_rows
        for s in range(tl.load(item + 3), tl.load(item + 4)):
            seg = plan + tl.load(plan + 1) + s * SEGMENT
            first, steps = tl.load(seg), tl.load(seg + 1)
            whole, whole_end = tl.load(seg + 2), tl.load(seg + 3)
            bound = tl.load(seg + 4) + lane * tl.load(seg + 5)
            low = tl.load(plan + tl.load(plan + 2) + bound)
            # keys past the tile's end must keep nothing, or they would reach dQ
            high = tl.where(row0 + lane < row1, tl.load(plan + tl.load(plan + 3) + bound), 0)
            dk, dv = _steps(
                k, v, dk, dv, q_desc, do_desc, dq, starts + stat, deltas + stat, head * q_rows, first,
                whole, whole_end, 0, 0, low, high, rows, q_rows, scale2, False,
                BLOCK_M, D, STAGES, TMA_REDUCE, SUM_QUERIES,
            )  # fmt: skip
            dk, dv = _steps(
                k, v, dk, dv, q_desc, do_desc, dq, starts + stat, deltas + stat, head * q_rows, first, 0,
                steps - (whole_end - whole), whole, whole_end - whole, low, high, rows, q_rows, scale2,
                True, BLOCK_M, D, STAGES, TMA_REDUCE, SUM_QUERIES,
            )  # fmt: skip
    row, column = row0 + lane, tl.arange(0, D)
    if slot < 0:
        at = (kv * k_rows + row[:, None]).to(tl.int64) * D + column[None, :]
        tl.store(dk_out + at, (dk * scale).to(k.dtype), mask=row[:, None] < row1)
        tl.store(dv_out + at, dv.to(k.dtype), mask=row[:, None] < row1)
    else:
        at = slot.to(tl.int64) * (2 * BLOCK_N * D) + lane[:, None] * D + column[None, :]
        tl.store(parts + at, dk)
        tl.store(parts + at + BLOCK_N * D, dv)
