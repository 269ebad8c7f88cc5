"""Our own operator: one kernel pair over the segments view, for every mask.

The mask is segments: for each tile of rows a few runs of columns, most of them without masking. `backend`
says which kernels run: gluon on Hopper, triton on other GPUs, torch elsewhere.
"""

from longca.cases import Case
from longca.kernels.interface import Kernel, Prepared, Support, Tensors, prepared
from longca.masks.mask import Mask
from longca.masks.patterns import PATTERNS


def prepare(case: Case, mask: Mask, tensors: Tensors) -> Prepared:
    """Lower the slices to segments for this shape and device; the backend is chosen by what the device can do."""
    from longca.ops.segments import attention, plan

    q = tensors.q
    shape = (case.seqlen, case.seqlen, case.q_heads, case.kv_heads, case.head_dim)
    planned = plan(mask.slices, *shape, q.dtype, q.device)
    return prepared(
        lambda q, k, v: attention(q, k, v, planned)[0], tensors, "hsd", f"{planned.backend}, segments"
    )


KERNEL = Kernel(
    summary="longca's own kernel pair over the segments view; plain torch on a CPU",
    support=Support(
        patterns=frozenset(PATTERNS),
        passes={"cpu": ("forward", "backward"), "cuda": ("forward", "backward")},
        dtypes=frozenset({"float32", "float16", "bfloat16"}),
    ),
    prepare=prepare,
    distributions=("torch", "triton"),
)
