"""Our own operator on block maps: each KV head's kept blocks are slices, and slices are segments."""

from typing import TYPE_CHECKING

from longca.cases import Case
from longca.kernels.interface import Kernel, Prepared, Support, Tensors, prepared
from longca.masks.blocks import BlockMap
from longca.masks.patterns import DYNAMIC_PATTERNS

if TYPE_CHECKING:
    import torch

    from longca.ops.segments.plan import Plan


def prepare(case: Case, mask: BlockMap, tensors: Tensors) -> Prepared:
    """Lower every KV head's blocks to segments; any block size, any group."""
    from longca.ops.segments import attention

    planned = lower_map(mask, case.q_heads, case.head_dim, tensors.q.dtype, tensors.q.device)
    return prepared(
        lambda q, k, v: attention(q, k, v, planned)[0], tensors, "hsd", f"{planned.backend}, segments"
    )


def lower_map(
    mask: BlockMap, q_heads: int, head_dim: int, dtype: "torch.dtype", device: "torch.device"
) -> "Plan":
    """The operator's plan of a map, for both passes."""
    from longca.masks.views.block_lists import rectangles
    from longca.ops.segments import plan

    shape = (mask.seqlen, mask.seqlen, q_heads, mask.kv_heads, head_dim)
    return plan(rectangles(mask, device), *shape, dtype, device)


KERNEL = Kernel(
    summary="longca's own kernel pair over the segments of each KV head's block map",
    support=Support(
        patterns=frozenset(DYNAMIC_PATTERNS),
        passes={"cpu": ("forward", "backward"), "cuda": ("forward", "backward")},
        dtypes=frozenset({"float32", "float16", "bfloat16"}),
    ),
    prepare=prepare,
    distributions=("torch", "triton"),
)
