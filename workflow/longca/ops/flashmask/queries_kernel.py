"""The backward's first kernel: delta and dQ of a tile of queries, three products a step."""

# ruff: noqa: N803
# mypy: ignore-errors
import triton
import triton.language as tl

from longca.ops.flashmask.skipping import classify, hide, load_columns, lowest, pack


@triton.jit
def _steps(
    q, do, start, delta, dq, bits, count, base, k_desc, v_desc, kv_head, row, columns, width, scale2,
    MASKED: tl.constexpr, CAUSAL: tl.constexpr, LOWER_END: tl.constexpr, UPPER_START: tl.constexpr,
    BLOCK_N: tl.constexpr, D: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    for _ in tl.range(0, count, num_stages=STAGES):
        column = (base + lowest(bits)) * BLOCK_N
        bits &= bits - 1
        k = k_desc.load([kv_head, column, 0]).reshape(BLOCK_N, D)
        v = v_desc.load([kv_head, column, 0]).reshape(BLOCK_N, D)
        p = tl.math.exp2(tl.dot(q, k.T) * scale2 - start[:, None])
        if MASKED:
            c = column + tl.arange(0, BLOCK_N)
            lts, lte, uts, ute = load_columns(columns, width, c, CAUSAL, LOWER_END, UPPER_START)
            p = hide(
                p, 0.0, row[:, None], c[None, :], lts[None, :], lte[None, :], uts[None, :], ute[None, :],
                CAUSAL, LOWER_END, UPPER_START,
            )  # fmt: skip
        ds = p * (tl.dot(do, v.T) - delta[:, None])
        dq = tl.dot(ds.to(k.dtype), k, dq)
    return dq


@triton.jit
def queries_kernel(
    q_desc, k_desc, v_desc, out_desc, do_desc, dq_desc, starts, deltas, lse, columns, extrema, spans, order,
    queries, width, blocks, tiles, scale, scale2,
    SECTION: tl.constexpr, GROUP: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, D: tl.constexpr,
    CHUNK: tl.constexpr, STAGES: tl.constexpr, CAUSAL: tl.constexpr, LOWER_END: tl.constexpr,
    UPPER_START: tl.constexpr,
):  # fmt: skip
    """dQ, and for the second kernel starts = lse in powers of two (+inf where a row is empty: its softmax is 0) and
    deltas = rowsum(out * dout), both fp32 [q_heads, queries]."""
    inside = tl.program_id(0) % (tiles * SECTION)
    head = tl.program_id(0) // (tiles * SECTION) * SECTION + inside % SECTION
    tile = tl.load(order + inside // SECTION)
    first, end = tl.load(spans + tile * 3), tl.load(spans + tile * 3 + 1)
    row0 = tile * BLOCK_M
    row1 = tl.minimum(row0 + BLOCK_M, queries)
    row, lanes = row0 + tl.arange(0, BLOCK_M), tl.arange(0, CHUNK)
    line = head.to(tl.int64) * queries + row
    # Permuted, q and dout become left operands in registers: steps of 64 keys are short of shared memory's bandwidth.
    q = q_desc.load([head, row0, 0]).permute(1, 0, 2).reshape(BLOCK_M, D)
    do = do_desc.load([head, row0, 0]).permute(1, 0, 2).reshape(BLOCK_M, D)
    out = out_desc.load([head, row0, 0]).reshape(BLOCK_M, D)
    delta = tl.sum(out.to(tl.float32) * do.to(tl.float32), 1)
    start = tl.load(lse + line, mask=row < queries, other=float("-inf")) * 1.4426950408889634
    start = tl.where(start == float("-inf"), float("inf"), start)
    tl.store(starts + line, start, mask=row < queries)
    tl.store(deltas + line, delta, mask=row < queries)
    dq = tl.zeros([BLOCK_M, D], tl.float32)
    for base in range(first, end, CHUNK):
        kept, whole = classify(extrema, blocks, tl.minimum(base + lanes, end - 1), row0, row1)
        kept &= base + lanes < end
        whole &= kept
        part = kept & (whole == 0)
        dq = _steps(
            q, do, start, delta, dq, pack(whole, lanes), tl.sum(whole.to(tl.int32), 0), base, k_desc, v_desc,
            head // GROUP, row, columns, width, scale2, False, CAUSAL, LOWER_END, UPPER_START, BLOCK_N, D, STAGES,
        )  # fmt: skip
        dq = _steps(
            q, do, start, delta, dq, pack(part, lanes), tl.sum(part.to(tl.int32), 0), base, k_desc, v_desc,
            head // GROUP, row, columns, width, scale2, True, CAUSAL, LOWER_END, UPPER_START, BLOCK_N, D, STAGES,
        )  # fmt: skip
    dq_desc.store([head, row0, 0], (dq * scale).to(q.dtype).reshape(1, BLOCK_M, D))
