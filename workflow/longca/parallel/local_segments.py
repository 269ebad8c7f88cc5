"""Our own operator as a local kernel: any restricted mask, on any device.

Every sharding and every mechanism: a restricted mask is slices, and slices are segments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from longca.kernels.interface import Support
from longca.masks.patterns import PATTERNS
from longca.parallel.local_form import LocalForm

if TYPE_CHECKING:
    from longca.parallel.local import LocalKernel


def load() -> LocalKernel:
    """The operator's functional form."""
    from longca.ops import segments

    return segments  # a module has the calls


def backend(plan: Any) -> str:
    """The form of the operator that a plan is for."""
    return f"{plan.backend}, segments"


KERNEL = LocalForm(
    summary="longca's own kernel pair on a rank: any restricted mask",
    support=Support(
        patterns=frozenset(PATTERNS),
        passes={"cpu": ("forward", "backward"), "cuda": ("forward", "backward")},
        dtypes=frozenset({"float32", "float16", "bfloat16"}),
    ),
    load=load,
    backend=backend,
    distributions=("torch", "triton"),
)
