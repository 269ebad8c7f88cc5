"""cuDNN's fused attention through its graph API (nvidia-cudnn-frontend)."""

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
