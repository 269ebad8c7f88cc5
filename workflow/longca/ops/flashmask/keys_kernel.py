"""The backward's second kernel: dK and dV of a block of keys, four products a step."""

# ruff: noqa: N803
# mypy: ignore-errors
import triton
import triton.language as tl

from longca.ops.flashmask.skipping import classify, hide, load_columns, lowest, pack


@triton.jit
def _steps(
    k, v, dk, dv, bits, count, base, q_desc, do_desc, head, starts, deltas, column, columns, width, queries, scale2,
    MASKED: tl.constexpr, CAUSAL: tl.constexpr, LOWER_END: tl.constexpr, UPPER_START: tl.constexpr,
    BLOCK_M: tl.constexpr, D: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    for _ in tl.range(0, count, num_stages=STAGES):
        row0 = (base + lowest(bits)) * BLOCK_M
        bits &= bits - 1
        row = row0 + tl.arange(0, BLOCK_M)
        q = q_desc.load([head, row0, 0]).reshape(BLOCK_M, D)
        do = do_desc.load([head, row0, 0]).reshape(BLOCK_M, D)
        start = tl.load(starts + row, mask=row < queries, other=float("inf"))
        delta = tl.load(deltas + row, mask=row < queries, other=0.0)
        pt = tl.math.exp2(tl.dot(k, q.T) * scale2 - start[None, :])
        if MASKED:
            lts, lte, uts, ute = load_columns(columns, width, column, CAUSAL, LOWER_END, UPPER_START)
            pt = hide(
                pt, 0.0, row[None, :], column[:, None], lts[:, None], lte[:, None], uts[:, None], ute[:, None],
                CAUSAL, LOWER_END, UPPER_START,
            )  # fmt: skip
        dv = tl.dot(pt.to(q.dtype), do, dv)
        dst = pt * (tl.dot(v, do.T) - delta[None, :])
        dk = tl.dot(dst.to(q.dtype), q, dk)
    return dk, dv


@triton.jit
def keys_kernel(
    q_desc, k_desc, v_desc, do_desc, dk_desc, dv_desc, starts, deltas, columns, extrema, spans, order,
    queries, width, blocks, key_blocks, scale, scale2,
    SECTION: tl.constexpr, HEADS: tl.constexpr, SPLITS: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    D: tl.constexpr, CHUNK: tl.constexpr, STAGES: tl.constexpr, CAUSAL: tl.constexpr, LOWER_END: tl.constexpr,
    UPPER_START: tl.constexpr,
):  # fmt: skip
    """dK and dV of one key block, summed over HEADS query heads: one of SPLITS parts of a KV head's group."""
    inside = tl.program_id(0) % (key_blocks * SECTION)
    part_head = tl.program_id(0) // (key_blocks * SECTION) * SECTION + inside % SECTION
    kv_head = part_head // SPLITS
    block = tl.load(order + inside // SECTION)
    first, end = tl.load(spans + block * 3), tl.load(spans + block * 3 + 1)
    column, lanes = block * BLOCK_N + tl.arange(0, BLOCK_N), tl.arange(0, CHUNK)
    k = k_desc.load([kv_head, block * BLOCK_N, 0]).reshape(BLOCK_N, D)
    v = v_desc.load([kv_head, block * BLOCK_N, 0]).reshape(BLOCK_N, D)
    dk = tl.zeros([BLOCK_N, D], tl.float32)
    dv = tl.zeros([BLOCK_N, D], tl.float32)
    for base in range(first, end, CHUNK):
        tile = base + lanes
        kept, whole = classify(
            extrema, blocks, block, tile * BLOCK_M, tl.minimum((tile + 1) * BLOCK_M, queries)
        )
        kept &= tile < end
        whole &= kept
        part = kept & (whole == 0)
        whole_bits, part_bits = pack(whole, lanes), pack(part, lanes)
        wholes, parts = tl.sum(whole.to(tl.int32), 0), tl.sum(part.to(tl.int32), 0)
        for member in range(HEADS):
            head = part_head * HEADS + member
            line = head.to(tl.int64) * queries
            dk, dv = _steps(
                k, v, dk, dv, whole_bits, wholes, base, q_desc, do_desc, head, starts + line, deltas + line, column,
                columns, width, queries, scale2, False, CAUSAL, LOWER_END, UPPER_START, BLOCK_M, D, STAGES,
            )  # fmt: skip
            dk, dv = _steps(
                k, v, dk, dv, part_bits, parts, base, q_desc, do_desc, head, starts + line, deltas + line, column,
                columns, width, queries, scale2, True, CAUSAL, LOWER_END, UPPER_START, BLOCK_M, D, STAGES,
            )  # fmt: skip
    dk_desc.store([part_head, block * BLOCK_N, 0], (dk * scale).to(dk_desc.dtype).reshape(1, BLOCK_N, D))
    dv_desc.store([part_head, block * BLOCK_N, 0], dv.to(dv_desc.dtype).reshape(1, BLOCK_N, D))
