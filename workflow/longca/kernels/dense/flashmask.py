"""Our own Triton kernels of the FlashMask paper: hidden rows by key, blocks skipped by their extrema.

The mask is four numbers a key that say which queries do not see it; a mask that hides a key from two runs on
one side is `unsupported`. `backend` names the vectors that are read.
"""

from longca.cases import Case
from longca.kernels.interface import Kernel, Prepared, Support, Tensors, UnsupportedError, prepared
from longca.masks.mask import Mask
from longca.masks.patterns import PATTERNS
from longca.masks.views import flashmask
from longca.masks.views.unavailable import ViewUnavailable


def prepare(case: Case, mask: Mask, tensors: Tensors) -> Prepared:
    """Lower the slices to column vectors; the backend names the vectors that are read."""
    from longca.ops.flashmask import attention, plan

    try:
        view = flashmask.lower(mask.slices, mask.seqlen, mask.seqlen)
    except ViewUnavailable as error:
        raise UnsupportedError(str(error)) from error
    planned = plan(view, case.q_heads, case.kv_heads, case.head_dim, tensors.q.device)
    backend = f"triton, columns {planned.columns.form}"
    return prepared(lambda q, k, v: attention(q, k, v, planned), tensors, "hsd", backend)


KERNEL = Kernel(
    summary="longca's own Triton kernels of FlashMask: column vectors of hidden rows, blocks skipped by their extrema",
    support=Support(
        patterns=frozenset(PATTERNS),
        passes={"cuda": ("forward", "backward")},
        head_dims=frozenset({64, 128}),
        capability=(9, 0),  # tiles are as large as Hopper's shared memory allows
    ),
    prepare=prepare,
    distributions=("torch", "triton"),
)
