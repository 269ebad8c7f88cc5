"""Our own Triton kernels of Video Sparse Attention: blocks of 64 x 64 by lists of the kept ones, any group of heads.

Given lists of kept blocks, in both orientations.
"""

from longca.cases import Case
from longca.kernels.interface import Kernel, Prepared, Support, Tensors, prepared
from longca.masks.blocks import BlockMap


def prepare(case: Case, mask: BlockMap, tensors: Tensors) -> Prepared:
    """Lists of kept blocks in both orientations."""
    from longca.ops.video_sparse import attention, plan

    planned = plan(mask, case.q_heads, case.head_dim, tensors.q.device, "triton")
    return prepared(lambda q, k, v: attention(q, k, v, planned), tensors, "hsd", "triton, block lists")


KERNEL = Kernel(
    summary="longca's own Triton kernels of Video Sparse Attention: lists of kept 64 x 64 blocks",
    support=Support(
        patterns=frozenset({"uniform_block"}),
        passes={"cuda": ("forward", "backward")},
        head_dims=frozenset({64, 128}),
        capability=(9, 0),  # tiles are as large as Hopper's shared memory allows
        blocks={"forward": frozenset({64}), "backward": frozenset({64})},
        without={"variable_block": "takes blocks of one size only"},
    ),
    prepare=prepare,
    distributions=("torch", "triton"),
)
