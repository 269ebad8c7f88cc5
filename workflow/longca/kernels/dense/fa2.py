"""FlashAttention 2 (flash-attn 2.x).

The mask's native form chooses the call: whole and window by `flash_attn_func`, packed sequences by
`flash_attn_varlen_func`. The module `flash_attn` of another generation is `missing`, as for `fa`.
"""

from longca.cases import Case
from longca.kernels.flash_attention import flash_attention
from longca.kernels.interface import Kernel, Prepared, Support, Tensors
from longca.kernels.native_form import FORMS, native_form, patterns_of, reasons_without
from longca.masks.mask import Mask


def prepare(case: Case, mask: Mask, tensors: Tensors) -> Prepared:
    """Causal, window or packed sequences, as the mask's native form says."""
    from flash_attn.flash_attn_interface import flash_attn_func, flash_attn_varlen_func

    return flash_attention(
        flash_attn_func, flash_attn_varlen_func, native_form(mask), tensors, "flash-attn 2"
    )


KERNEL = Kernel(
    summary="FlashAttention 2: flash-attn 2.x",
    support=Support(
        patterns=patterns_of(FORMS),
        passes={"cuda": ("forward", "backward")},
        capability=(8, 0),
        without=reasons_without(FORMS),
    ),
    prepare=prepare,
    imports=("torch", "flash_attn.flash_attn_interface"),
    distributions=("torch", "flash-attn"),
    majors={"flash-attn": 2},
)
