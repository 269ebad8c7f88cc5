"""torch's scaled_dot_product_attention, its plain path: matmul, softmax, matmul.

Full and causal without a mask, every other pattern as a dense one; memory grows with the square of the
length. Forced, and checked, as `sdpa_flash` is.
"""

from functools import partial

from longca.kernels.interface import Kernel, Support
from longca.kernels.sdpa_backend import prepare_sdpa
from longca.masks.patterns import PATTERNS

KERNEL = Kernel(
    summary="scaled_dot_product_attention, math backend: the whole score matrix",
    support=Support(
        patterns=frozenset(PATTERNS),
        passes={"cpu": ("forward", "backward"), "cuda": ("forward", "backward")},
        dtypes=frozenset({"float32", "float16", "bfloat16"}),
    ),
    prepare=partial(prepare_sdpa, backend="MATH"),
)
