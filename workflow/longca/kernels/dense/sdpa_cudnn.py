"""torch's scaled_dot_product_attention through cuDNN.

Full and causal without a mask, every other pattern as a dense one, whose every cell is computed. Forced, and
checked, as `sdpa_flash` is.
"""

from functools import partial

from longca.kernels.interface import Kernel, Support
from longca.kernels.sdpa_backend import prepare_sdpa
from longca.masks.patterns import PATTERNS

KERNEL = Kernel(
    summary="scaled_dot_product_attention, cuDNN backend; a dense mask where it is neither full nor causal",
    support=Support(
        patterns=frozenset(PATTERNS),
        passes={"cuda": ("forward", "backward")},
        capability=(8, 0),
    ),
    prepare=partial(prepare_sdpa, backend="CUDNN_ATTENTION"),
)
