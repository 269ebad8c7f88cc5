"""torch's scaled_dot_product_attention with the backend torch itself chooses.

[SDPA](https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html)
takes no mask, `is_causal` or a dense mask: full and causal take the first two, every other pattern is dense.
The profiler says which operator really ran. The math path is a `fallback`: that is another kernel,
`sdpa_math`.
"""

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
