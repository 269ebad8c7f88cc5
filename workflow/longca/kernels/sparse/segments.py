"""Our own operator on block maps: each KV head's kept blocks are slices, and slices are segments."""

from longca.cases import Case
from longca.kernels.interface import Kernel, Prepared, Support, Tensors, prepared
from longca.masks.blocks import BlockMap
from longca.masks.patterns import DYNAMIC_PATTERNS


def prepare(case: Case, mask: BlockMap, tensors: Tensors) -> Prepared:
    """Lower every KV head's blocks to segments; any block size, any group."""
    from longca.ops.segments import attention, plan

    q = tensors.q
    shape = (case.seqlen, case.seqlen, case.q_heads, case.kv_heads, case.head_dim)
    planned = plan([mask.rectangles(head) for head in range(case.kv_heads)], *shape, q.dtype, q.device)
    return prepared(
        lambda q, k, v: attention(q, k, v, planned)[0], tensors, "hsd", f"{planned.backend}, segments"
    )


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
