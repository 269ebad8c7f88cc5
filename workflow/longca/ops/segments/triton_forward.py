"""The portable forward kernel: one program an item."""

# ruff: noqa: N803, E741
# mypy: ignore-errors
import triton
import triton.language as tl


@triton.jit
def _steps(
    q,
    m,
    l,
    acc,
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
        s = tl.dot(q, k.T)
        if MASKED:
            c = column + keys
            s = tl.where((c[None, :] >= low[:, None]) & (c[None, :] < high[:, None]), s, float("-inf"))
        m_new = tl.maximum(m, tl.max(s, 1) * scale2)
        shift = tl.where(m_new == float("-inf"), 0.0, m_new)
        p = tl.math.exp2(s * scale2 - shift[:, None])
        alpha = tl.math.exp2(m - shift)
        l = l * alpha + tl.sum(p, 1)
        acc = acc * alpha[:, None]
        v = v_desc.load([kv_row + column, 0])
        acc = tl.dot(p.to(v.dtype), v, acc)
        m = m_new
    return m, l, acc


@triton.jit
def forward_kernel(
    q_desc,
    k_desc,
    v_desc,
    out,
    lse,
    plan,
    q_rows,
    k_rows,
    scale2,
    GROUP: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    D: tl.constexpr,
    STAGES: tl.constexpr,
    ITEM: tl.constexpr,
    SEGMENT: tl.constexpr,
    HEADER: tl.constexpr,
):
    item = plan + tl.load(plan) + tl.load(plan + HEADER + tl.program_id(0) * 2) * ITEM
    row0, row1, head = tl.load(item), tl.load(item + 1), tl.load(item + 2)
    lane, keys = tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_N)
    kv_row = (head // GROUP) * k_rows
    q = q_desc.load([head * q_rows + row0, 0])
    m = tl.full([BLOCK_M], float("-inf"), tl.float32)
    l = tl.zeros([BLOCK_M], tl.float32)
    acc = tl.zeros([BLOCK_M, D], tl.float32)
    for s in range(tl.load(item + 3), tl.load(item + 4)):
        seg = plan + tl.load(plan + 1) + s * SEGMENT
        first, steps = tl.load(seg), tl.load(seg + 1)
        whole, whole_end = tl.load(seg + 2), tl.load(seg + 3)
        bound = tl.load(seg + 4) + lane * tl.load(seg + 5)
        low = tl.load(plan + tl.load(plan + 2) + bound)
        high = tl.load(plan + tl.load(plan + 3) + bound)
        m, l, acc = _steps(
            q, m, l, acc, k_desc, v_desc, kv_row, first, whole, whole_end, 0, 0,
            low, high, keys, scale2, False, BLOCK_N, STAGES,
        )  # fmt: skip
        m, l, acc = _steps(
            q, m, l, acc, k_desc, v_desc, kv_row, first, 0, steps - (whole_end - whole), whole,
            whole_end - whole, low, high, keys, scale2, True, BLOCK_N, STAGES,
        )  # fmt: skip
    row = row0 + lane
    acc = acc * tl.where(l > 0, 1.0 / l, 0.0)[:, None]
    line = (head * q_rows + row).to(tl.int64)
    tl.store(lse + line, (m + tl.math.log2(l)) * 0.6931471805599453, mask=row < row1)
    tl.store(out + line[:, None] * D + tl.arange(0, D)[None, :], acc.to(q.dtype), mask=row[:, None] < row1)
