"""Plain torch attention that writes the whole score matrix: the baseline everything is faster than.

The full pattern comes without a mask, every other one as a dense one. Scores and softmax are float32, as
fused kernels have them; time and memory grow with the square of the length.
"""

from longca.cases import Case
from longca.kernels.interface import Kernel, Prepared, Support, Tensors, prepared
from longca.masks.mask import Mask
from longca.masks.patterns import PATTERNS
from longca.masks.views.dense import dense


def prepare(case: Case, mask: Mask, tensors: Tensors) -> Prepared:
    """Scores and softmax in float32, as fused kernels have them; time and memory grow with seqlen squared.

    Scores in 16 bits err more than the gate allows.
    """
    import torch

    hidden = None
    if mask.area < case.seqlen**2:
        hidden = ~torch.from_numpy(dense(mask.slices, case.seqlen, case.seqlen)).to(tensors.q.device)

    def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        grouped = q.unflatten(0, (case.kv_heads, -1))
        scores = grouped.float() @ k.unsqueeze(1).mT.float() * case.head_dim**-0.5
        if hidden is not None:
            scores = scores.masked_fill(hidden, float("-inf"))
        return (torch.softmax(scores, -1).to(v.dtype) @ v.unsqueeze(1)).flatten(0, 1)

    return prepared(attention, tensors, "hsd", "torch, no mask" if hidden is None else "torch, dense mask")


KERNEL = Kernel(
    summary="torch matmul, softmax, matmul over the whole score matrix",
    support=Support(
        patterns=frozenset(PATTERNS),
        passes={"cpu": ("forward", "backward"), "cuda": ("forward", "backward")},
        dtypes=frozenset({"float32", "float16", "bfloat16"}),
    ),
    prepare=prepare,
)
