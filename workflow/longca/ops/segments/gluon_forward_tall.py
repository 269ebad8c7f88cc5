"""The Hopper forward for masks that keep every cell: tiles of 192 query rows, 64 for each of three warpgroups.

A warpgroup has one product in flight, or none: while it computes its softmax the tensor cores work for the other two.
So the probabilities can take the registers of the scores, which leaves room for the third; keys and values are copied
for half as many rows again as two warpgroups have (gluon_forward.py), and every step waits and synchronises less.
"""

# ruff: noqa: N803, N806, E741
# mypy: ignore-errors

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)

from longca.ops.segments.gluon_forward_store import store
from longca.ops.segments.gluon_softmax import rescale, softmax

WARPGROUPS = gl.constexpr(3)


@gluon.jit
def tall_forward_kernel(
    q_desc,
    k_desc,
    v_desc,
    out,
    lse,
    plan,
    SCALE2: gl.constexpr,
    GROUP: gl.constexpr,
    BLOCK_N: gl.constexpr,
    D: gl.constexpr,
    STAGES: gl.constexpr,
    ITEM: gl.constexpr,
    HEADER: gl.constexpr,
):
    q_smem = gl.allocate_shared_memory(q_desc.dtype, [WARPGROUPS, 64, D], q_desc.layout)
    k_smem = gl.allocate_shared_memory(k_desc.dtype, [STAGES, BLOCK_N, D], k_desc.layout)
    v_smem = gl.allocate_shared_memory(v_desc.dtype, [STAGES, BLOCK_N, D], v_desc.layout)
    # "full", a copy has landed; "empty", all warpgroups are done with it. A step's keys and values share theirs.
    q_full = gl.allocate_shared_memory(gl.int64, [1, 1], mbarrier.MBarrierLayout())
    q_empty = gl.allocate_shared_memory(gl.int64, [1, 1], mbarrier.MBarrierLayout())
    full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    mbarrier.init(q_full.index(0), count=1)
    mbarrier.init(q_empty.index(0), count=WARPGROUPS)
    for i in gl.static_range(STAGES):
        mbarrier.init(full.index(i), count=1)
        mbarrier.init(empty.index(i), count=WARPGROUPS)
    gl.warp_specialize(
        [
            (_consume, (q_smem, k_smem, v_smem, q_full, q_empty, full, empty, plan, out, lse,
                        0, SCALE2, BLOCK_N, D, STAGES, ITEM, HEADER)),
            (_consume, (q_smem, k_smem, v_smem, q_full, q_empty, full, empty, plan, out, lse,
                        1, SCALE2, BLOCK_N, D, STAGES, ITEM, HEADER)),
            (_consume, (q_smem, k_smem, v_smem, q_full, q_empty, full, empty, plan, out, lse,
                        2, SCALE2, BLOCK_N, D, STAGES, ITEM, HEADER)),
            (_produce, (q_desc, k_desc, v_desc, q_smem, k_smem, v_smem, q_full, q_empty, full, empty, plan,
                        GROUP, BLOCK_N, D, STAGES, ITEM, HEADER)),
        ],
        [4, 4, 1],
        [160, 160, 24],
    )  # fmt: skip


@gluon.jit
def _consume(
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
    BLOCK_N: gl.constexpr,
    D: gl.constexpr,
    STAGES: gl.constexpr,
    ITEM: gl.constexpr,
    HEADER: gl.constexpr,
):
    S_LAYOUT: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, BLOCK_N, 16])
    O_LAYOUT: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, D, 16])
    P_LAYOUT: gl.constexpr = gl.DotOperandLayout(0, O_LAYOUT, 2)
    DTYPE: gl.constexpr = q_smem.dtype
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
        mbarrier.wait(q_full.index(0), done & 1)
        for _ in range(gl.load(item + 5)):
            slot = step % STAGES
            mbarrier.wait(full.index(slot), (step // STAGES) & 1)
            s = warpgroup_mma(
                q_smem.index(WG), k_smem.index(slot).permute((1, 0)), zero, use_acc=False, is_async=True
            )
            s = warpgroup_mma_wait(0, deps=[s])
            p, m, l, factor = softmax(s, m, l, SCALE2, P_LAYOUT, DTYPE)
            o = rescale(o, factor, D)
            o = warpgroup_mma(p, v_smem.index(slot), o, is_async=True)
            o = warpgroup_mma_wait(0, deps=[o])
            mbarrier.arrive(empty.index(slot))
            step += 1
        mbarrier.arrive(q_empty.index(0))
        store(o, m, l, out, lse, plan, item, lane, WG, D)
        item += ITEM


@gluon.jit
def _produce(
    q_desc,
    k_desc,
    v_desc,
    q_smem,
    k_smem,
    v_smem,
    q_full,
    q_empty,
    full,
    empty,
    plan,
    GROUP: gl.constexpr,
    BLOCK_N: gl.constexpr,
    D: gl.constexpr,
    STAGES: gl.constexpr,
    ITEM: gl.constexpr,
    HEADER: gl.constexpr,
):
    q_rows = gl.load(plan + 4)
    k_rows = gl.load(plan + 5)
    mine = plan + HEADER + gl.program_id(0) * 2
    begin = gl.load(mine)
    item = plan + gl.load(plan) + begin * ITEM
    step = 0
    for done in range(gl.load(mine + 2) - begin):
        head = gl.load(item + 2)
        row = head * q_rows + gl.load(item)
        mbarrier.wait(q_empty.index(0), (done & 1) ^ 1)
        mbarrier.expect(q_full.index(0), WARPGROUPS * 64 * D * 2)
        for part in gl.static_range(WARPGROUPS):
            tma.async_copy_global_to_shared(q_desc, [row + 64 * part, 0], q_full.index(0), q_smem.index(part))
        row = (head // GROUP) * k_rows
        for _ in range(gl.load(item + 5)):
            slot = step % STAGES
            mbarrier.wait(empty.index(slot), ((step // STAGES) & 1) ^ 1)
            mbarrier.expect(full.index(slot), 2 * BLOCK_N * D * 2)
            tma.async_copy_global_to_shared(k_desc, [row, 0], full.index(slot), k_smem.index(slot))
            tma.async_copy_global_to_shared(v_desc, [row, 0], full.index(slot), v_smem.index(slot))
            row += BLOCK_N
            step += 1
        item += ITEM
