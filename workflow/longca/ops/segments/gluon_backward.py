"""The Hopper backward kernel: a producer warp copies tiles, two warpgroups of 64 keys each compute.

An item is a tile of 128 keys of one KV head and some of its query heads; a step is BLOCK_M queries of one of them.
Without HEADS_INSIDE an item walks head after head, rows forward. With it all its heads take a step at the same rows
before the next rows, from the last rows to the first: tiles that end at the same row (of a document, of a causal mask)
read the same queries at the same time, so that these come from the cache. device_plan chooses.
WHOLE: see gluon_forward.
"""

# ruff: noqa: N803, N806
# mypy: ignore-errors

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier

from longca.ops.segments.gluon_backward_consumer import consume
from longca.ops.segments.gluon_backward_producer import produce

# Barriers: see gluon_forward; "ds_full", both warpgroups have left their dS.


@gluon.jit
def backward_kernel(
    q_desc,
    do_desc,
    k_desc,
    v_desc,
    start_desc,
    delta_desc,
    dq_desc,
    dk_out,
    dv_out,
    parts,
    plan,
    stat_rows,
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
    qdo_smem = gl.allocate_shared_memory(q_desc.dtype, [2 * STAGES, BLOCK_M, D], q_desc.layout)
    kv_smem = gl.allocate_shared_memory(k_desc.dtype, [2, 128, D], k_desc.layout)
    stat_smem = gl.allocate_shared_memory(gl.float32, [2 * STAGES, BLOCK_M], start_desc.layout)
    DS: gl.constexpr = gl.NVMMASharedLayout.get_default_for([128, BLOCK_M], q_desc.dtype)
    ds_smem = gl.allocate_shared_memory(q_desc.dtype, [2, 128, BLOCK_M], DS)
    dq_smem = gl.allocate_shared_memory(gl.float32, [2, 128, 32], dq_desc.layout)
    kv_full = gl.allocate_shared_memory(gl.int64, [1, 1], mbarrier.MBarrierLayout())
    kv_empty = gl.allocate_shared_memory(gl.int64, [1, 1], mbarrier.MBarrierLayout())
    ds_full = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    step_full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    step_empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    mbarrier.init(kv_full.index(0), count=1)
    mbarrier.init(kv_empty.index(0), count=2)
    for i in gl.static_range(2):
        mbarrier.init(ds_full.index(i), count=2)
    for i in gl.static_range(STAGES):
        mbarrier.init(step_full.index(i), count=1)
        mbarrier.init(step_empty.index(i), count=2)
    gl.warp_specialize(
        [
            (consume, (dq_desc, qdo_smem, kv_smem, stat_smem, ds_smem, dq_smem, kv_full, kv_empty, ds_full,
                        step_full, step_empty, plan, dk_out, dv_out, parts,
                        0, SCALE, SUM_QUERIES, HEADS_INSIDE, WHOLE, BLOCK_M, D, STAGES, ITEM, SEGMENT, HEADER)),
            (consume, (dq_desc, qdo_smem, kv_smem, stat_smem, ds_smem, dq_smem, kv_full, kv_empty, ds_full,
                        step_full, step_empty, plan, dk_out, dv_out, parts,
                        1, SCALE, SUM_QUERIES, HEADS_INSIDE, WHOLE, BLOCK_M, D, STAGES, ITEM, SEGMENT, HEADER)),
            (produce, (q_desc, do_desc, k_desc, v_desc, start_desc, delta_desc, qdo_smem, kv_smem, stat_smem,
                        kv_full, kv_empty, step_full, step_empty,
                        plan, stat_rows, HEADS_INSIDE, BLOCK_M, D, STAGES, ITEM, SEGMENT, HEADER)),
        ],
        [4, 1],
        [240, 24],
    )  # fmt: skip
