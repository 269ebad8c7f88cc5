"""A warpgroup of the forward: 64 query rows of each item.

It walks the steps of all its items in one loop, so that the first scores of an item are computed while the last output
of the one before is finished and stored.
"""

# ruff: noqa: N803, N806, E741
# mypy: ignore-errors

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, warpgroup_mma, warpgroup_mma_wait

from longca.ops.segments.gluon_forward_segments import inside, item_segments, read_segment
from longca.ops.segments.gluon_forward_store import store
from longca.ops.segments.gluon_softmax import rescale, softmax


@gluon.jit
def _end_block():
    """Never runs, which the compiler must not know. The branch to it ends a block of code: the assembler waits for
    products in flight as early in a block as it can, which would be before the softmax they are to run beside.
    """
    threads = gl.arange(0, 128, gl.BlockedLayout([1], [32], [4], [0]))
    gl.inline_asm_elementwise(
        "nanosleep.u32 1; mov.b32 $0, $1;", "=r,r", [threads], gl.int32, is_pure=False, pack=1
    )


@gluon.jit
def consume(
    q_smem,
    kv_smem,
    q_full,
    q_empty,
    k_full,
    k_empty,
    v_full,
    v_empty,
    plan,
    out,
    lse,
    WG: gl.constexpr,
    SCALE2: gl.constexpr,
    WHOLE: gl.constexpr,
    BLOCK_N: gl.constexpr,
    D: gl.constexpr,
    STAGES: gl.constexpr,
    ITEM: gl.constexpr,
    SEGMENT: gl.constexpr,
    HEADER: gl.constexpr,
):
    S_LAYOUT: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BLOCK_N, 16])
    O_LAYOUT: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, D, 16])
    P_LAYOUT: gl.constexpr = gl.DotOperandLayout(0, O_LAYOUT, 2)
    DTYPE: gl.constexpr = q_smem.dtype
    keys = gl.arange(0, BLOCK_N, gl.SliceLayout(0, S_LAYOUT))
    lane = WG * 64 + gl.arange(0, 64, gl.SliceLayout(1, S_LAYOUT))
    zero = gl.zeros([64, BLOCK_N], gl.float32, S_LAYOUT)
    none = gl.full([64], float("-inf"), gl.float32, gl.SliceLayout(1, S_LAYOUT))
    mine = plan + HEADER + gl.program_id(0) * 2
    total = gl.load(mine + 1)
    if total > 0:
        item = plan + gl.load(plan) + gl.load(mine) * ITEM
        index, index_end = item_segments(item, WHOLE)
        first, steps, whole_begin, whole_end, low, width = read_segment(
            plan, item, index, lane, SEGMENT, WHOLE
        )
        j = 0
        done = 0
        o = gl.zeros([64, D], gl.float32, O_LAYOUT)
        mbarrier.wait(q_full.index(0), 0)
        mbarrier.wait(k_full.index(0), 0)
        s = warpgroup_mma(
            q_smem.index(WG), kv_smem.index(0).permute((1, 0)), zero, use_acc=False, is_async=True
        )
        s = warpgroup_mma_wait(0, deps=[s])
        mbarrier.arrive(k_empty.index(0))
        if not WHOLE and (whole_begin > 0) | (whole_end == 0):
            c = first + keys
            s = gl.where(inside(c, low, width), s, float("-inf"))
        p, m, l, factor = softmax(s, none, gl.zeros_like(none), SCALE2, P_LAYOUT, DTYPE)
        for step in range(1, total):
            j += 1
            fresh = 0
            if j == steps:  # on to the next segment
                j = 0
                index += 1
                if index == index_end:  # on to the next item
                    mbarrier.arrive(q_empty.index(done & 1))
                    done += 1
                    fresh = 1
                    item += ITEM
                    index, index_end = item_segments(item, WHOLE)
                    mbarrier.wait(q_full.index(done & 1), (done >> 1) & 1)
                first, steps, whole_begin, whole_end, low, width = read_segment(
                    plan, item, index, lane, SEGMENT, WHOLE
                )
            slot = step % STAGES
            before = (step - 1) % STAGES
            # scores of this step and the output of the step before run while this step's softmax is computed
            mbarrier.wait(k_full.index(slot), (step // STAGES) & 1)
            q = q_smem.index((done & 1) * 2 + WG)
            s = warpgroup_mma(q, kv_smem.index(slot).permute((1, 0)), zero, use_acc=False, is_async=True)
            mbarrier.wait(v_full.index(before), ((step - 1) // STAGES) & 1)
            o = warpgroup_mma(p, kv_smem.index(STAGES + before), o, is_async=True)
            s = warpgroup_mma_wait(1, deps=[s])
            mbarrier.arrive(k_empty.index(slot))
            if not WHOLE and (j < whole_begin) | (j >= whole_end):
                c = first + j * BLOCK_N + keys
                s = gl.where(inside(c, low, width), s, float("-inf"))
            m_before = m
            l_before = l
            m = gl.where(fresh == 1, none, m)
            l = gl.where(fresh == 1, gl.zeros_like(l), l)
            p_new, m, l, factor = softmax(s, m, l, SCALE2, P_LAYOUT, DTYPE)
            if steps < 0:
                _end_block()
            o = warpgroup_mma_wait(0, deps=[o])
            mbarrier.arrive(v_empty.index(before))
            if fresh == 1:
                store(o, m_before, l_before, out, lse, plan, item - ITEM, lane, WG, D)
                o = gl.zeros([64, D], gl.float32, O_LAYOUT)
            o = rescale(o, factor, D)
            p = p_new
        last = total - 1
        slot = last % STAGES
        mbarrier.wait(v_full.index(slot), (last // STAGES) & 1)
        o = warpgroup_mma(p, kv_smem.index(STAGES + slot), o, is_async=True)
        o = warpgroup_mma_wait(0, deps=[o])
        store(o, m, l, out, lse, plan, item, lane, WG, D)
