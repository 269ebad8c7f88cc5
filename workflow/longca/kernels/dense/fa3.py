"""FlashAttention 3, for Hopper alone: the module flash_attn_interface that its `hopper/` folder builds.

The mask's native form chooses the call, as for `fa2`. It is on no package index: its pin builds it from
source.
"""

from longca.cases import Case
from longca.kernels.flash_attention import flash_attention
from longca.kernels.interface import Kernel, Prepared, Support, Tensors
from longca.kernels.native_form import FORMS, native_form, patterns_of, reasons_without
from longca.masks.mask import Mask


def prepare(case: Case, mask: Mask, tensors: Tensors) -> Prepared:
    """Causal, window or packed sequences, as the mask's native form says."""
    from flash_attn_interface import flash_attn_func, flash_attn_varlen_func

    return flash_attention(
        flash_attn_func, flash_attn_varlen_func, native_form(mask), tensors, "flash-attn 3"
    )


KERNEL = Kernel(
    summary="FlashAttention 3: flash_attn_interface, built for Hopper",
    support=Support(
        patterns=patterns_of(FORMS),
        passes={"cuda": ("forward", "backward")},
        capability=(9, 0),
        capability_below=(10, 0),
        without=reasons_without(FORMS),
    ),
    prepare=prepare,
    imports=("torch", "flash_attn_interface"),
    distributions=("torch", "flash-attn-3"),
)
