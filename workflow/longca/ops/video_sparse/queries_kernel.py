"""The backward's first kernel: delta and dQ of a block of queries, three products a step."""

# ruff: noqa: N803
# mypy: ignore-errors
import triton
import triton.language as tl

from longca.ops.video_sparse.rows import ends_inside, load_rows, store_rows


@triton.jit
def _steps(
    q, do, start, delta, dq, kept, begin, end, last, k_desc, v_desc, kv_head, keys, scale2,
    MASKED: tl.constexpr, BLOCK: tl.constexpr, D: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    block = tl.load(kept + tl.minimum(begin, last))
    for i in tl.range(begin, end, num_stages=STAGES):
        column = block * BLOCK
        block = tl.load(kept + tl.minimum(i + 1, last))  # a step ahead: the copies wait for it
        k = k_desc.load([kv_head, column, 0]).reshape(BLOCK, D)
        v = v_desc.load([kv_head, column, 0]).reshape(BLOCK, D)
        p = tl.math.exp2(tl.dot(q, k.T) * scale2 - start[:, None])
        if MASKED:
            p = tl.where((column + tl.arange(0, BLOCK) < keys)[None, :], p, 0.0)
        ds = p * (tl.dot(do, v.T) - delta[:, None])
        dq = tl.dot(ds.to(k.dtype), k, dq)
    return dq


@triton.jit
def queries_kernel(
    q_desc, k_desc, v_desc, out_desc, do_desc, dq_desc, starts, deltas, lse, counts, lists, width, queries, keys,
    scale, scale2,
    GROUP: tl.constexpr, RAGGED: tl.constexpr, BLOCK: tl.constexpr, D: tl.constexpr,
    STAGES: tl.constexpr,
):  # fmt: skip
    """dQ, and for the second kernel starts = lse in powers of two (+inf where a row is empty: its softmax is 0) and
    deltas = rowsum(out * dout), both fp32 [q_heads, queries]."""
    block, rows = tl.program_id(0), tl.num_programs(0)
    head = tl.program_id(1)
    kv_head = head // GROUP
    line = kv_head * rows + block
    count = tl.load(counts + line)
    kept = lists + line.to(tl.int64) * width
    row = block * BLOCK + tl.arange(0, BLOCK)
    at = head.to(tl.int64) * queries + row
    q = load_rows(q_desc, head, block, BLOCK, D)
    do = load_rows(do_desc, head, block, BLOCK, D)
    out = load_rows(out_desc, head, block, BLOCK, D)
    delta = tl.sum(out.to(tl.float32) * do.to(tl.float32), 1)
    start = tl.load(lse + at, mask=row < queries, other=float("-inf")) * 1.4426950408889634
    start = tl.where(start == float("-inf"), float("inf"), start)
    tl.store(starts + at, start, mask=row < queries)
    tl.store(deltas + at, delta, mask=row < queries)
    dq = tl.zeros([BLOCK, D], tl.float32)
    last, whole = tl.maximum(count - 1, 0), count
    if RAGGED:
        whole = tl.where(ends_inside(kept, last, keys, BLOCK), last, count)
    dq = _steps(
        q,
        do,
        start,
        delta,
        dq,
        kept,
        0,
        whole,
        last,
        k_desc,
        v_desc,
        kv_head,
        keys,
        scale2,
        False,
        BLOCK,
        D,
        STAGES,
    )
    if RAGGED:
        dq = _steps(
            q,
            do,
            start,
            delta,
            dq,
            kept,
            whole,
            count,
            last,
            k_desc,
            v_desc,
            kv_head,
            keys,
            scale2,
            True,
            BLOCK,
            D,
            1,
        )
    store_rows(dq_desc, head, block, (dq * scale).to(q.dtype), BLOCK, D)
