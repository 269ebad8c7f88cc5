"""torch's scaled_dot_product_attention, its copy of FlashAttention 2.

The backend is forced with `torch.nn.attention.sdpa_kernel`, and the profiler says which operator really ran:
another one is a `fallback`, a refusal is `unsupported` with torch's own warnings.
"""

from functools import partial

from longca.kernels.interface import Kernel, Support
from longca.kernels.native_form import patterns_of, reasons_without
from longca.kernels.sdpa_backend import prepare_sdpa

# Torch's words where it is given a mask: "Flash Attention does not support non-null attn_mask".
FORMS = ("full", "causal")

KERNEL = Kernel(
    summary="scaled_dot_product_attention, flash backend",
    support=Support(
        patterns=patterns_of(FORMS),
        passes={"cuda": ("forward", "backward")},
        capability=(8, 0),
        without=reasons_without(FORMS),
    ),
    prepare=partial(prepare_sdpa, backend="FLASH_ATTENTION"),
)
