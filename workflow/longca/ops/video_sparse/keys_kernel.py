"""The backward's second kernel: dK and dV of a block of keys, four products a step."""

# ruff: noqa: N803
# mypy: ignore-errors
import triton
import triton.language as tl


@triton.jit
def keys_kernel(
    q_desc, k_desc, v_desc, do_desc, dk_desc, dv_desc, starts, deltas, counts, lists, width, queries, scale, scale2,
    GROUP: tl.constexpr, BLOCK: tl.constexpr, D: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """dK and dV of one block of keys, summed over the KV head's GROUP query heads.

    Keys past the last one need no masking: each key's sums are its own, and theirs are not written. Queries past the
    last one read as 0 and start at +inf.
    """
    block, columns = tl.program_id(0), tl.num_programs(0)
    kv_head = tl.program_id(1)
    line = kv_head * columns + block
    count = tl.load(counts + line)
    kept = lists + line.to(tl.int64) * width
    k = k_desc.load([kv_head, block * BLOCK, 0]).reshape(BLOCK, D)
    v = v_desc.load([kv_head, block * BLOCK, 0]).reshape(BLOCK, D)
    dk = tl.zeros([BLOCK, D], tl.float32)
    dv = tl.zeros([BLOCK, D], tl.float32)
    head, place, query_block = kv_head * GROUP, 0, tl.load(kept)
    for _ in tl.range(0, count * GROUP, num_stages=STAGES):
        row0 = query_block * BLOCK
        row = row0 + tl.arange(0, BLOCK)
        at = head.to(tl.int64) * queries + row
        q = q_desc.load([head, row0, 0]).reshape(BLOCK, D)
        do = do_desc.load([head, row0, 0]).reshape(BLOCK, D)
        start = tl.load(starts + at, mask=row < queries, other=float("inf"))
        delta = tl.load(deltas + at, mask=row < queries, other=0.0)
        pt = tl.math.exp2(tl.dot(k, q.T) * scale2 - start[None, :])
        dv = tl.dot(pt.to(q.dtype), do, dv)
        dst = pt * (tl.dot(v, do.T) - delta[None, :])
        dk = tl.dot(dst.to(q.dtype), q, dk)
        turn = place + 1 == count
        head, place = tl.where(turn, head + 1, head), tl.where(turn, 0, place + 1)
        query_block = tl.load(kept + place)  # a step ahead: the copies wait for it
    dk_desc.store([kv_head, block * BLOCK, 0], (dk * scale).to(k.dtype).reshape(1, BLOCK, D))
    dv_desc.store([kv_head, block * BLOCK, 0], dv.to(k.dtype).reshape(1, BLOCK, D))
