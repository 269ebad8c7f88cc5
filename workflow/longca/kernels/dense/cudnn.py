"""cuDNN's fused attention through its graph API (nvidia-cudnn-frontend).

Windows are bands around the diagonal, documents a ragged batch with offsets in elements, 64 bits wide.
cuDNN's left bound counts the diagonal: a window of 1024 to the left is 1025. Both graphs are planned while
preparing (`prepare_ms`); a backward without a plan is `unsupported` and leaves the forward. Version 1.18
refuses a process in which CUDA 12's runtime is loaded: a worker is a process of one kernel.
"""

from typing import TYPE_CHECKING, Any

from longca.cases import Case
from longca.kernels.interface import Kernel, Prepared, Support, Tensors, prepared
from longca.kernels.native_form import FORMS, native_form, patterns_of, reasons_without
from longca.masks.mask import Mask

if TYPE_CHECKING:
    import torch


def prepare(case: Case, mask: Mask, tensors: Tensors) -> Prepared:
    """Build both plans ahead; causal and windows are bands around the diagonal, documents a ragged batch."""
    from longca.kernels.cudnn_attention import CudnnAttention

    form = native_form(mask)
    planned = CudnnAttention(case, form, tensors.q.device, tensors.gradients)

    def attention(q: "torch.Tensor", k: "torch.Tensor", v: "torch.Tensor") -> "torch.Tensor":
        result: Any = planned(q, k, v)
        return result

    return prepared(attention, tensors, "shd", f"cudnn graph, {form.name}")


KERNEL = Kernel(
    summary="cuDNN's fused attention through nvidia-cudnn-frontend",
    support=Support(
        patterns=patterns_of(FORMS),
        passes={"cuda": ("forward", "backward")},
        capability=(8, 0),
        without=reasons_without(FORMS),
    ),
    prepare=prepare,
    imports=("torch", "cudnn"),
    distributions=("torch", "nvidia-cudnn-frontend"),
)
