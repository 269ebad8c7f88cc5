"""FlashAttention 1 (flash-attn 1.x): packed sequences with equal heads.

Only packed sequences: a whole one is a pack of one. Grouped heads are not expanded for it. It aligns causal
sequences at the top left and counts elements in 32 bits: queries and keys of different lengths, and 2^31
elements, are refused.

It is the module `flash_attn`, as FlashAttention 2 and 4 are. Where another generation imports it is `missing`
and says which one; envs/README.md tells how to have them side by side.
"""

from typing import TYPE_CHECKING

import numpy as np

from longca.cases import Case
from longca.kernels.interface import Kernel, Prepared, Support, Tensors, UnsupportedError, prepared
from longca.kernels.native_form import Packed, native_form, patterns_of, reasons_without
from longca.masks.mask import Mask

if TYPE_CHECKING:
    import torch

FORMS = ("full", "causal", "varlen full", "varlen causal")


def prepare(case: Case, mask: Mask, tensors: Tensors) -> Prepared:
    """Its one function takes packed sequences; a whole one is a pack of one."""
    from flash_attn.flash_attn_interface import flash_attn_unpadded_func

    form = native_form(mask, FORMS)
    if tensors.q.numel() >= 1 << 31:
        raise UnsupportedError("counts elements in 32 bits: seqlen x heads x head_dim must be below 2^31")
    whole = np.array([0, case.seqlen], np.int32)
    packed = form.packed or Packed(whole, whole)
    if form.causal and not np.array_equal(packed.cu_seqlens_q, packed.cu_seqlens_k):
        raise UnsupportedError("aligns causal sequences at the top left: queries and keys must be as many")
    lengths = (*packed.on(tensors.q.device), *packed.longest)

    def attention(q: "torch.Tensor", k: "torch.Tensor", v: "torch.Tensor") -> "torch.Tensor":
        return flash_attn_unpadded_func(q, k, v, *lengths, dropout_p=0.0, causal=form.causal)

    return prepared(attention, tensors, "shd", f"flash-attn 1, {form.name}")


KERNEL = Kernel(
    summary="FlashAttention 1: flash-attn 1.x, packed sequences",
    support=Support(
        patterns=patterns_of(FORMS),
        passes={"cuda": ("forward", "backward")},
        head_dims=frozenset(range(8, 129, 8)),
        grouped_heads=False,
        capability=(7, 5),
        without=reasons_without(FORMS),
    ),
    prepare=prepare,
    imports=("torch", "flash_attn.flash_attn_interface"),
    distributions=("torch", "flash-attn"),
    majors={"flash-attn": 1},
)
