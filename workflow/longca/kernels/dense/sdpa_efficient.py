"""torch's scaled_dot_product_attention, its memory-efficient kernel (of xFormers).

Full and causal without a mask, every other pattern as a dense one. Whether it takes grouped heads is torch's
to say. Forced, and checked, as `sdpa_flash` is.
"""

from functools import partial

from longca.kernels.interface import Kernel, Support
from longca.kernels.sdpa_backend import prepare_sdpa
from longca.masks.patterns import PATTERNS

KERNEL = Kernel(
    summary="scaled_dot_product_attention, memory-efficient backend; a dense mask where it is neither full nor causal",
    support=Support(
        patterns=frozenset(PATTERNS),
        passes={"cuda": ("forward", "backward")},
        dtypes=frozenset({"float32", "float16", "bfloat16"}),
        capability=(5, 0),
    ),
    prepare=partial(prepare_sdpa, backend="EFFICIENT_ATTENTION"),
)
