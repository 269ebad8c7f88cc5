"""The Hopper forward kernel: a producer warp copies tiles, two warpgroups of 64 query rows each compute.

Programs are persistent: each walks its list of items. WHOLE: no step has a cell to mask (the full mask, maps of
blocks as large as tiles, lengths that are multiples of them); the bounds of rows then take no registers and no time.
"""

# ruff: noqa: N803
# mypy: ignore-errors

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier

from longca.ops.segments.gluon_forward_consumer import consume
from longca.ops.segments.gluon_forward_producer import produce

# Barriers: "full", a copy has landed; "empty", both warpgroups are done with it. Each kind is an allocation of its own,
# or the compiler would order waits after arrivals by synchronising the warpgroup.


@gluon.jit
def forward_kernel(
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
    q_smem = gl.allocate_shared_memory(q_desc.dtype, [4, 64, D], q_desc.layout)
    kv_smem = gl.allocate_shared_memory(k_desc.dtype, [2 * STAGES, BLOCK_N, D], k_desc.layout)
    q_full = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    q_empty = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    k_full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    k_empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    v_full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    v_empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for i in gl.static_range(2):
        mbarrier.init(q_full.index(i), count=1)
        mbarrier.init(q_empty.index(i), count=2)
    for i in gl.static_range(STAGES):
        mbarrier.init(k_full.index(i), count=1)
        mbarrier.init(k_empty.index(i), count=2)
        mbarrier.init(v_full.index(i), count=1)
        mbarrier.init(v_empty.index(i), count=2)
    gl.warp_specialize(
        [
            (consume, (q_smem, kv_smem, q_full, q_empty, k_full, k_empty, v_full, v_empty, plan, out, lse,
                        0, SCALE2, WHOLE, BLOCK_N, D, STAGES, ITEM, SEGMENT, HEADER)),
            (consume, (q_smem, kv_smem, q_full, q_empty, k_full, k_empty, v_full, v_empty, plan, out, lse,
                        1, SCALE2, WHOLE, BLOCK_N, D, STAGES, ITEM, SEGMENT, HEADER)),
            (produce, (q_desc, k_desc, v_desc, q_smem, kv_smem, q_full, q_empty, k_full, k_empty, v_full,
                        v_empty, plan, GROUP, BLOCK_N, D, STAGES, ITEM, SEGMENT, HEADER)),
        ],
        [4, 1],
        [240, 24],
    )  # fmt: skip
