"""dQ on its own, for the deterministic backward: a program owns its rows, so nothing is added out of order."""

# ruff: noqa: N803
# mypy: ignore-errors

import triton
import triton.language as tl


@triton.jit
def _steps(
    q,
    do,
    start,
    delta,
    dq,
    k_desc,
    v_desc,
    kv_row,
    first,
    begin,
    end,
    skip_at,
    skip,
    low,
    high,
    keys,
    scale2,
    MASKED: tl.constexpr,
    BLOCK_N: tl.constexpr,
    STAGES: tl.constexpr,
):
    for i in tl.range(begin, end, num_stages=STAGES):
        column = first + i * BLOCK_N
        if MASKED:  # the masked steps lie around the whole ones
            column = first + tl.where(i < skip_at, i, i + skip) * BLOCK_N
        k = k_desc.load([kv_row + column, 0])
        p = tl.math.exp2((tl.dot(q, k.T) + start[:, None]) * scale2)
        if MASKED:
            c = column + keys
            p = tl.where((c[None, :] >= low[:, None]) & (c[None, :] < high[:, None]), p, 0.0)
        v = v_desc.load([kv_row + column, 0])
        ds = p * (tl.dot(do, v.T) + delta[:, None])
        dq = tl.dot(ds.to(k.dtype), k, dq)
    return dq


@triton.jit
def queries_kernel(
    q_desc,
    do_desc,
    k_desc,
    v_desc,
    starts,
    deltas,
    dq_out,
    plan,
    q_rows,
    k_rows,
    stat_rows,
    scale2,
    scale,
    GROUP: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    D: tl.constexpr,
    STAGES: tl.constexpr,
    ITEM: tl.constexpr,
    SEGMENT: tl.constexpr,
    HEADER: tl.constexpr,
):
    mine = plan + HEADER + tl.program_id(0) * 2
    lane, keys = tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_N)
    for index in range(tl.load(mine), tl.load(mine + 2)):
        item = plan + tl.load(plan) + index * ITEM
        row0, row1, head = tl.load(item), tl.load(item + 1), tl.load(item + 2)
        kv_row = (head // GROUP) * k_rows
        row = row0 + lane
        q = q_desc.load([head * q_rows + row0, 0])
        do = do_desc.load([head * q_rows + row0, 0])
        start = tl.load(starts + head * stat_rows + row, mask=row < row1, other=0.0)
        delta = tl.load(deltas + head * stat_rows + row, mask=row < row1, other=0.0)
        dq = tl.zeros([BLOCK_M, D], tl.float32)
        for s in range(tl.load(item + 3), tl.load(item + 4)):
            seg = plan + tl.load(plan + 1) + s * SEGMENT
            first, steps = tl.load(seg), tl.load(seg + 1)
            whole, whole_end = tl.load(seg + 2), tl.load(seg + 3)
            bound = tl.load(seg + 4) + lane * tl.load(seg + 5)
            low = tl.load(plan + tl.load(plan + 2) + bound)
            high = tl.load(plan + tl.load(plan + 3) + bound)
            dq = _steps(
                q, do, start, delta, dq, k_desc, v_desc, kv_row, first, whole, whole_end, 0, 0,
                low, high, keys, scale2, False, BLOCK_N, STAGES,
            )  # fmt: skip
            dq = _steps(
                q, do, start, delta, dq, k_desc, v_desc, kv_row, first, 0, steps - (whole_end - whole), whole,
                whole_end - whole, low, high, keys, scale2, True, BLOCK_N, STAGES,
            )  # fmt: skip
        line = (head * q_rows + row).to(tl.int64)
        at = dq_out + line[:, None] * D + tl.arange(0, D)[None, :]
        tl.store(at, (dq * scale).to(dq_out.dtype.element_ty), mask=row[:, None] < row1)
