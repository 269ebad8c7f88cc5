"""The forward kernel: a program walks the list of key blocks that a block of queries keeps."""

# ruff: noqa: N803, E741
# mypy: ignore-errors
import triton
import triton.language as tl

from longca.ops.video_sparse.rows import ends_inside, load_rows, store_rows


@triton.jit
def _steps(
    q, m, l, acc, kept, begin, end, last, k_desc, v_desc, kv_head, keys, scale2,
    MASKED: tl.constexpr, BLOCK: tl.constexpr, D: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    block = tl.load(kept + tl.minimum(begin, last))
    for i in tl.range(begin, end, num_stages=STAGES):
        column = block * BLOCK
        block = tl.load(kept + tl.minimum(i + 1, last))  # a step ahead: the copies wait for it
        k = k_desc.load([kv_head, column, 0]).reshape(BLOCK, D)
        s = tl.dot(q, k.T)
        if MASKED:
            s = tl.where((column + tl.arange(0, BLOCK) < keys)[None, :], s, float("-inf"))
        m_new = tl.maximum(m, tl.max(s, 1) * scale2)
        p = tl.math.exp2(s * scale2 - m_new[:, None])
        alpha = tl.math.exp2(m - m_new)
        l = l * alpha + tl.sum(p, 1)
        acc = acc * alpha[:, None]
        v = v_desc.load([kv_head, column, 0]).reshape(BLOCK, D)
        acc = tl.dot(p.to(v.dtype), v, acc)
        m = m_new
    return m, l, acc


@triton.jit
def forward_kernel(
    q_desc, k_desc, v_desc, out_desc, lse, counts, lists, width, queries, keys, scale2,
    GROUP: tl.constexpr, RAGGED: tl.constexpr, BLOCK: tl.constexpr, D: tl.constexpr,
    STAGES: tl.constexpr,
):  # fmt: skip
    """out and lse of one block of queries of one head."""
    block, rows = tl.program_id(0), tl.num_programs(0)
    head = tl.program_id(1)
    kv_head = head // GROUP
    line = kv_head * rows + block
    count = tl.load(counts + line)
    kept = lists + line.to(tl.int64) * width
    q = load_rows(q_desc, head, block, BLOCK, D)
    m = tl.full([BLOCK], float("-inf"), tl.float32)
    l = tl.zeros([BLOCK], tl.float32)
    acc = tl.zeros([BLOCK, D], tl.float32)
    last, whole = tl.maximum(count - 1, 0), count
    if RAGGED:
        whole = tl.where(ends_inside(kept, last, keys, BLOCK), last, count)
    m, l, acc = _steps(
        q, m, l, acc, kept, 0, whole, last, k_desc, v_desc, kv_head, keys, scale2, False, BLOCK, D, STAGES
    )
    if RAGGED:
        m, l, acc = _steps(
            q, m, l, acc, kept, whole, count, last, k_desc, v_desc, kv_head, keys, scale2, True, BLOCK, D, 1
        )
    acc = acc * tl.where(l > 0, 1.0 / l, 0.0)[:, None]
    row = block * BLOCK + tl.arange(0, BLOCK)
    at = head.to(tl.int64) * queries + row
    tl.store(lse + at, (m + tl.math.log2(l)) * 0.6931471805599453, mask=row < queries)
    store_rows(out_desc, head, block, acc.to(q.dtype), BLOCK, D)
