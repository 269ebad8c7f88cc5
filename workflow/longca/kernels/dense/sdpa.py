"""torch's scaled_dot_product_attention with the backend torch itself chooses."""

from longca.kernels.interface import Kernel, Support
from longca.kernels.sdpa_backend import prepare_sdpa
from longca.masks.patterns import PATTERNS

KERNEL = Kernel(
    summary="torch.nn.functional.scaled_dot_product_attention, torch's own choice of backend",
    support=Support(
        patterns=frozenset(PATTERNS),
        passes={"cpu": ("forward", "backward"), "cuda": ("forward", "backward")},
        dtypes=frozenset({"float32", "float16", "bfloat16"}),
    ),
    prepare=prepare_sdpa,
)
