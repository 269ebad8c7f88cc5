"""The Hopper forward over whole blocks of 64: a producer warp copies tiles, one warpgroup computes a block of queries.

Two such programs fit an SM: the products of one run beside the softmax of the other.
"""

# ruff: noqa: N803
# mypy: ignore-errors

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import mbarrier

from longca.ops.video_sparse.gluon_forward_consumer import consume
from longca.ops.video_sparse.gluon_forward_producer import produce


@gluon.jit
def gluon_forward_kernel(
    q_desc, k_desc, v_desc, out_desc, lse, counts, lists, width,
    SCALE2: gl.constexpr, GROUP: gl.constexpr, BLOCK: gl.constexpr, D: gl.constexpr, STAGES: gl.constexpr,
):  # fmt: skip
    """out and lse of one block of queries of one head; program (block, head)."""
    # Each kind of barrier is an allocation of its own, or the compiler would order waits after arrivals.
    q_smem = gl.allocate_shared_memory(q_desc.dtype, [BLOCK, D], q_desc.layout)
    k_smem = gl.allocate_shared_memory(k_desc.dtype, [STAGES, BLOCK, D], k_desc.layout)
    v_smem = gl.allocate_shared_memory(v_desc.dtype, [STAGES, BLOCK, D], v_desc.layout)
    q_full = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    k_full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    k_empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    v_full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    v_empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    mbarrier.init(q_full, count=1)
    for i in gl.static_range(STAGES):
        mbarrier.init(k_full.index(i), count=1)
        mbarrier.init(k_empty.index(i), count=1)
        mbarrier.init(v_full.index(i), count=1)
        mbarrier.init(v_empty.index(i), count=1)
    gl.warp_specialize(
        [
            (consume, (q_smem, k_smem, v_smem, q_full, k_full, k_empty, v_full, v_empty, out_desc, lse, counts,
                       width, SCALE2, GROUP, BLOCK, D, STAGES)),
            (produce, (q_desc, k_desc, v_desc, q_smem, k_smem, v_smem, q_full, k_full, k_empty, v_full, v_empty,
                       counts, lists, width, GROUP, BLOCK, D, STAGES)),
        ],
        [1],
        [24],
    )  # fmt: skip
