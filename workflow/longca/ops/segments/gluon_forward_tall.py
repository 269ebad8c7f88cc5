"""The Hopper forward for long runs of keys: tiles of 192 query rows, 64 for each of three warpgroups.

A warpgroup has one product in flight, or none: while it computes its softmax the tensor cores work for the other two.
So the probabilities can take the registers of the scores, which leaves room for the third; keys and values are copied
for half as many rows again as two warpgroups have (gluon_forward.py), and every step waits and synchronises less.
But an item starts with nothing to compute beside its reads.
"""

# ruff: noqa: N803
# mypy: ignore-errors

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier, tma

from longca.ops.segments.gluon_forward_tall_consumer import consume

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
    WHOLE: gl.constexpr,
    GROUP: gl.constexpr,
    BLOCK_N: gl.constexpr,
    D: gl.constexpr,
    STAGES: gl.constexpr,
    ITEM: gl.constexpr,
    SEGMENT: gl.constexpr,
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
            (consume, (q_smem, k_smem, v_smem, q_full, q_empty, full, empty, plan, out, lse,
                        0, SCALE2, WHOLE, BLOCK_N, D, STAGES, ITEM, SEGMENT, HEADER)),
            (consume, (q_smem, k_smem, v_smem, q_full, q_empty, full, empty, plan, out, lse,
                        1, SCALE2, WHOLE, BLOCK_N, D, STAGES, ITEM, SEGMENT, HEADER)),
            (consume, (q_smem, k_smem, v_smem, q_full, q_empty, full, empty, plan, out, lse,
                        2, SCALE2, WHOLE, BLOCK_N, D, STAGES, ITEM, SEGMENT, HEADER)),
            (_produce, (q_desc, k_desc, v_desc, q_smem, k_smem, v_smem, q_full, q_empty, full, empty, plan,
                        GROUP, BLOCK_N, D, STAGES, ITEM, SEGMENT, HEADER)),
        ],
        [4, 4, 1],
        [160, 160, 24],
    )  # fmt: skip


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
    SEGMENT: gl.constexpr,
    HEADER: gl.constexpr,
):
    q_rows = gl.load(plan + 4)
    k_rows = gl.load(plan + 5)
    segments = plan + gl.load(plan + 1)
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
        for at in range(gl.load(item + 3), gl.load(item + 4)):
            row = (head // GROUP) * k_rows + gl.load(segments + at * SEGMENT)
            for _ in range(gl.load(segments + at * SEGMENT + 1)):
                slot = step % STAGES
                mbarrier.wait(empty.index(slot), ((step // STAGES) & 1) ^ 1)
                mbarrier.expect(full.index(slot), 2 * BLOCK_N * D * 2)
                tma.async_copy_global_to_shared(k_desc, [row, 0], full.index(slot), k_smem.index(slot))
                tma.async_copy_global_to_shared(v_desc, [row, 0], full.index(slot), v_smem.index(slot))
                row += BLOCK_N
                step += 1
        item += ITEM
