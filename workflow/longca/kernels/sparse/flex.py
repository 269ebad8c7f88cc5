"""FlexAttention over a BlockMask of each head's own blocks."""

from longca.cases import Case
from longca.kernels.dense.flex import NO_BACKWARD_ON_CPU, compiled
from longca.kernels.interface import Kernel, Prepared, Support, Tensors
from longca.masks.blocks import BlockMap
from longca.masks.patterns import DYNAMIC_PATTERNS


def prepare(case: Case, mask: BlockMap, tensors: Tensors) -> Prepared:
    """The block map as a BlockMask with one structure a query head."""
    from longca.masks.views.flex_torch import map_block_mask

    return compiled(tensors, map_block_mask(mask, case.q_heads, tensors.q.device))


KERNEL = Kernel(
    summary="torch.nn.attention.flex_attention, compiled by inductor, over each head's block map",
    support=Support(
        patterns=frozenset(DYNAMIC_PATTERNS),
        passes={"cpu": ("forward",), "cuda": ("forward", "backward")},
        dtypes=frozenset({"float32", "float16", "bfloat16"}),
        without={"backward": NO_BACKWARD_ON_CPU},
    ),
    prepare=prepare,
    distributions=("torch", "triton"),
)
