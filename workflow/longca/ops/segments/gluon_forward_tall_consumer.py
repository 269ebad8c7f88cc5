"""A warpgroup of the forward in tall tiles: 64 query rows of each item, one product at a time."""

# ruff: noqa: N803, N806, E741
# mypy: ignore-errors

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, warpgroup_mma, warpgroup_mma_wait

from longca.ops.segments.gluon_forward_segments import inside, item_segments, read_segment
from longca.ops.segments.gluon_forward_store import store
from longca.ops.segments.gluon_softmax import rescale, softmax


@gluon.jit
def consume(
    q_smem,
    k_smem,
    v_smem,
    q_full,
    q_empty,
    full,
    empty,
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
    begin = gl.load(mine)
    item = plan + gl.load(plan) + begin * ITEM
    step = 0
    for done in range(gl.load(mine + 2) - begin):
        o = gl.zeros([64, D], gl.float32, O_LAYOUT)
        m = none
        l = gl.zeros_like(none)
        index, index_end = item_segments(item, WHOLE)
        for at in range(index, index_end):
            first, steps, whole_begin, whole_end, low, width = read_segment(
                plan, item, at, lane, SEGMENT, WHOLE
            )
            if at == index:  # the queries arrive while the first bounds are read
                mbarrier.wait(q_full.index(0), done & 1)
            for j in range(steps):
                slot = step % STAGES
                mbarrier.wait(full.index(slot), (step // STAGES) & 1)
                s = warpgroup_mma(
                    q_smem.index(WG), k_smem.index(slot).permute((1, 0)), zero, use_acc=False, is_async=True
                )
                s = warpgroup_mma_wait(0, deps=[s])
                if not WHOLE and (j < whole_begin) | (j >= whole_end):
                    c = first + j * BLOCK_N + keys
                    s = gl.where(inside(c, low, width), s, float("-inf"))
                p, m, l, factor = softmax(s, m, l, SCALE2, P_LAYOUT, DTYPE)
                o = rescale(o, factor, D)
                o = warpgroup_mma(p, v_smem.index(slot), o, is_async=True)
                o = warpgroup_mma_wait(0, deps=[o])
                mbarrier.arrive(empty.index(slot))
                step += 1
        mbarrier.arrive(q_empty.index(0))
        store(o, m, l, out, lse, plan, item, lane, WG, D)
        item += ITEM
