"""The forward kernel: a program walks the key blocks that a tile of queries sees a part of."""

# ruff: noqa: N803, E741
# mypy: ignore-errors
import triton
import triton.language as tl

from longca.ops.flashmask.skipping import classify, hide, load_columns, lowest, pack


@triton.jit
def _steps(
    q, m, l, acc, bits, count, base, k_desc, v_desc, kv_head, row, columns, width, scale2,
    MASKED: tl.constexpr, CAUSAL: tl.constexpr, LOWER_END: tl.constexpr, UPPER_START: tl.constexpr,
    BLOCK_N: tl.constexpr, D: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    for _ in tl.range(0, count, num_stages=STAGES):
        column = (base + lowest(bits)) * BLOCK_N
        bits &= bits - 1
        k = k_desc.load([kv_head, column, 0]).reshape(BLOCK_N, D)
        s = tl.dot(q, k.T)
        if MASKED:
            c = column + tl.arange(0, BLOCK_N)
            lts, lte, uts, ute = load_columns(columns, width, c, CAUSAL, LOWER_END, UPPER_START)
            s = hide(
                s, float("-inf"), row[:, None], c[None, :], lts[None, :], lte[None, :], uts[None, :], ute[None, :],
                CAUSAL, LOWER_END, UPPER_START,
            )  # fmt: skip
        m_new = tl.maximum(m, tl.max(s, 1) * scale2)
        shift = m_new
        if MASKED:
            shift = tl.where(m_new == float("-inf"), 0.0, m_new)
        p = tl.math.exp2(s * scale2 - shift[:, None])
        alpha = tl.math.exp2(m - shift)
        l = l * alpha + tl.sum(p, 1)
        acc = acc * alpha[:, None]
        v = v_desc.load([kv_head, column, 0]).reshape(BLOCK_N, D)
        acc = tl.dot(p.to(v.dtype), v, acc)
        m = m_new
    return m, l, acc


@triton.jit
def forward_kernel(
    q_desc, k_desc, v_desc, out_desc, lse, columns, extrema, spans, order, queries, width, blocks, tiles, scale2,
    SECTION: tl.constexpr, GROUP: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, D: tl.constexpr,
    CHUNK: tl.constexpr, STAGES: tl.constexpr, CAUSAL: tl.constexpr, LOWER_END: tl.constexpr,
    UPPER_START: tl.constexpr,
):  # fmt: skip
    """out and lse of one tile of one query head. Heads come in sections whose keys fit the cache, the longest tiles
    of a section first."""
    inside = tl.program_id(0) % (tiles * SECTION)
    head = tl.program_id(0) // (tiles * SECTION) * SECTION + inside % SECTION
    tile = tl.load(order + inside // SECTION)
    first, end = tl.load(spans + tile * 3), tl.load(spans + tile * 3 + 1)
    row0 = tile * BLOCK_M
    row1 = tl.minimum(row0 + BLOCK_M, queries)
    row, lanes = row0 + tl.arange(0, BLOCK_M), tl.arange(0, CHUNK)
    q = q_desc.load([head, row0, 0]).reshape(BLOCK_M, D)
    m = tl.full([BLOCK_M], float("-inf"), tl.float32)
    l = tl.zeros([BLOCK_M], tl.float32)
    acc = tl.zeros([BLOCK_M, D], tl.float32)
    for base in range(first, end, CHUNK):
        kept, whole = classify(extrema, blocks, tl.minimum(base + lanes, end - 1), row0, row1)
        kept &= base + lanes < end
        whole &= kept
        part = kept & (whole == 0)
        m, l, acc = _steps(
            q, m, l, acc, pack(whole, lanes), tl.sum(whole.to(tl.int32), 0), base, k_desc, v_desc, head // GROUP,
            row, columns, width, scale2, False, CAUSAL, LOWER_END, UPPER_START, BLOCK_N, D, STAGES,
        )  # fmt: skip
        m, l, acc = _steps(
            q, m, l, acc, pack(part, lanes), tl.sum(part.to(tl.int32), 0), base, k_desc, v_desc, head // GROUP,
            row, columns, width, scale2, True, CAUSAL, LOWER_END, UPPER_START, BLOCK_N, D, STAGES,
        )  # fmt: skip
    acc = acc * tl.where(l > 0, 1.0 / l, 0.0)[:, None]
    line = head.to(tl.int64) * queries + row
    tl.store(lse + line, (m + tl.math.log2(l)) * 0.6931471805599453, mask=row < queries)
    out_desc.store([head, row0, 0], acc.to(q.dtype).reshape(1, BLOCK_M, D))
