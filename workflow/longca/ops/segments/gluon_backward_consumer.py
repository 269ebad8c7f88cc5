"""A warpgroup of the backward: 64 of an item's 128 keys.

Scores are computed transposed, so that dK and dV take them from registers. dQ needs all 128 keys: both warpgroups leave
their dS in shared memory, and each computes half of the step's dQ and adds it to the sum in global memory.
"""

# ruff: noqa: N803, N806, SIM113
# mypy: ignore-errors

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)

from longca.ops.segments.gluon_backward_outputs import fragments, store, tma_reduce_add


@gluon.jit
def _spread(line, LAYOUT: gl.constexpr, COLUMNS: gl.constexpr):
    """A line of shared memory in every row. The copies must exist before the product that starts from them is issued:
    left to the compiler they come after, and it waits for the products in flight."""
    x = line.load(gl.SliceLayout(0, LAYOUT))[None, :].broadcast_to([64, COLUMNS])
    return gl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [x], gl.float32, is_pure=False, pack=1)


@gluon.jit
def consume(
    dq_desc,
    qdo_smem,
    kv_smem,
    stat_smem,
    ds_smem,
    dq_smem,
    kv_full,
    kv_empty,
    ds_full,
    step_full,
    step_empty,
    plan,
    dk_out,
    dv_out,
    parts,
    WG: gl.constexpr,
    SCALE: gl.constexpr,
    SUM_QUERIES: gl.constexpr,
    HEADS_INSIDE: gl.constexpr,
    WHOLE: gl.constexpr,
    BLOCK_M: gl.constexpr,
    D: gl.constexpr,
    STAGES: gl.constexpr,
    ITEM: gl.constexpr,
    SEGMENT: gl.constexpr,
    HEADER: gl.constexpr,
):
    SCALE2: gl.constexpr = SCALE * 1.4426950408889634
    # A step's dQ is cut between the warpgroups by columns; by rows where half a row would split a swizzled line.
    DQ_ROWS: gl.constexpr = BLOCK_M if D == 128 else BLOCK_M // 2
    DQ_COLUMNS: gl.constexpr = D // 2 if D == 128 else D
    DQ_ROW0: gl.constexpr = 0 if D == 128 else WG * DQ_ROWS
    DQ_COLUMN0: gl.constexpr = WG * DQ_COLUMNS if D == 128 else 0
    DQ_LINE0: gl.constexpr = WG * 32 if D == 128 else 0  # where a half starts in a line of dQ's sum
    S_LAYOUT: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BLOCK_M, 16])
    O_LAYOUT: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, D, 16])
    DQ_LAYOUT: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, DQ_COLUMNS, 16])
    P_LAYOUT: gl.constexpr = gl.DotOperandLayout(0, O_LAYOUT, 2)
    DTYPE: gl.constexpr = qdo_smem.dtype
    lane = WG * 64 + gl.arange(0, 64, gl.SliceLayout(1, S_LAYOUT))
    queries = gl.arange(0, BLOCK_M, gl.SliceLayout(0, S_LAYOUT))
    zero_dq = gl.zeros([DQ_ROWS, DQ_COLUMNS], gl.float32, DQ_LAYOUT)
    k_own = kv_smem.index(0).slice(WG * 64, 64, 0)
    v_own = kv_smem.index(1).slice(WG * 64, 64, 0)
    k_columns = kv_smem.index(0).slice(DQ_COLUMN0, DQ_COLUMNS, 1)
    dq_own = dq_smem.index(WG)
    q_rows = (gl.load(plan + 4) + 3) // 4 * 4  # of dQ's sum: a head is padded, see host
    step = 0
    done = 0
    mine = plan + HEADER + gl.program_id(0) * 2
    for index in range(gl.load(mine), gl.load(mine + 2)):
        item = plan + gl.load(plan) + index * ITEM
        begin = gl.load(item + 3)
        end = gl.load(item + 4)
        head0 = gl.load(item + 6)
        heads = gl.load(item + 7)
        here = gl.load(item + 1) - gl.load(item)
        dk = gl.zeros([64, D], gl.float32, O_LAYOUT)
        dv = gl.zeros([64, D], gl.float32, O_LAYOUT)
        mbarrier.wait(kv_full.index(0), done & 1)
        # the rows' order, see HEADS_INSIDE in gluon_backward
        outer_heads = heads
        row_heads = 1
        if HEADS_INSIDE:
            outer_heads = 1
            row_heads = heads
        for head in range(head0, head0 + outer_heads):
            q_row0 = head * q_rows
            q_row_end = q_row0 + row_heads * q_rows
            for s in range(begin, end):
                seg = plan + gl.load(plan + 1) + s * SEGMENT
                if HEADS_INSIDE:
                    seg = plan + gl.load(plan + 1) + (begin + end - 1 - s) * SEGMENT
                first = gl.load(seg)
                steps = gl.load(seg + 1)
                if not WHOLE:
                    whole_row = first + gl.load(seg + 2) * BLOCK_M
                    whole_row_end = first + gl.load(seg + 3) * BLOCK_M
                    bound = gl.load(seg + 4) + lane * gl.load(seg + 5)
                    low = gl.load(plan + gl.load(plan + 2) + bound)
                    # keys past the tile's end must keep nothing, or they would reach dQ; no such tile is WHOLE
                    width = gl.where(lane < here, gl.load(plan + gl.load(plan + 3) + bound) - low, 0)
                row = first
                if HEADS_INSIDE:
                    row = first + (steps - 1) * BLOCK_M
                q_row = q_row0
                # One loop over rows and heads: of two the compiler would keep what is alike for all heads of a row
                # in registers there are not.
                for _ in range(steps * row_heads):
                    slot = step % STAGES
                    phase = (step // STAGES) & 1
                    mbarrier.wait(step_full.index(slot), phase)
                    q = qdo_smem.index(slot)
                    do = qdo_smem.index(STAGES + slot)
                    # the sums start at -lse / scale and -delta, so that neither waits in registers
                    st = _spread(stat_smem.index(slot), S_LAYOUT, BLOCK_M)
                    dpt = _spread(stat_smem.index(STAGES + slot), S_LAYOUT, BLOCK_M)
                    st = warpgroup_mma(k_own, q.permute((1, 0)), st, is_async=True)
                    dpt = warpgroup_mma(v_own, do.permute((1, 0)), dpt, is_async=True)
                    st = warpgroup_mma_wait(1, deps=[st])
                    pt = gl.exp2(st * SCALE2)
                    if not WHOLE and (row < whole_row) | (row >= whole_row_end):
                        c = row + queries
                        # one unsigned compare tests both ends
                        offset = (c[None, :] - low[:, None]).to(gl.uint32)
                        pt = gl.where(offset < width.to(gl.uint32)[:, None], pt, 0.0)
                    pb = gl.convert_layout(pt.to(DTYPE), P_LAYOUT)
                    dpt = warpgroup_mma_wait(0, deps=[dpt])
                    dv = warpgroup_mma(pb, do, dv, is_async=True)
                    dst = (pt * dpt).to(DTYPE)
                    if SUM_QUERIES:
                        ds = ds_smem.index(step % 2)
                        ds.slice(WG * 64, 64, 0).store(dst)
                        fence_async_shared()
                        mbarrier.arrive(ds_full.index(step % 2))
                        mbarrier.wait(ds_full.index(step % 2), (step // 2) & 1)
                        ds_rows = ds.slice(DQ_ROW0, DQ_ROWS, 1).permute((1, 0))
                        dq = warpgroup_mma(ds_rows, k_columns, zero_dq, use_acc=False, is_async=True)
                        # dK runs while dQ leaves
                        dk = warpgroup_mma(gl.convert_layout(dst, P_LAYOUT), q, dk, is_async=True)
                        dv, dq = warpgroup_mma_wait(1, deps=[dv, dq])
                        tma.store_wait(0)
                        dq_own.store(fragments(dq))
                        fence_async_shared()
                        tma_reduce_add(dq_desc, [(q_row + row + DQ_ROW0) * 2, DQ_LINE0], dq_own)
                    else:
                        dk = warpgroup_mma(gl.convert_layout(dst, P_LAYOUT), q, dk, is_async=True)
                        dv = warpgroup_mma_wait(1, deps=[dv])
                    dk = warpgroup_mma_wait(0, deps=[dk])
                    mbarrier.arrive(step_empty.index(slot))
                    step += 1
                    if HEADS_INSIDE:
                        q_row += q_rows
                        next_row = q_row == q_row_end
                        row = gl.where(next_row, row - BLOCK_M, row)
                        q_row = gl.where(next_row, q_row0, q_row)
                    else:
                        row += BLOCK_M
        mbarrier.arrive(kv_empty.index(0))
        done += 1
        store(dk, dv, dk_out, dv_out, parts, plan, plan + gl.load(plan) + index * ITEM, WG, SCALE, D)
    tma.store_wait(0)
