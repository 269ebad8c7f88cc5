"""FlashAttention 2 as a local kernel: a rank's part of the mask has to be one full or causal rectangle.

One rectangle is what a ring needs of a full mask, and of a causal one in a zigzag or in contiguous shards;
Ulysses needs it of the whole. Elsewhere it is `unsupported`, with the reason.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from longca.kernels.interface import Support
from longca.masks.patterns import PATTERNS
from longca.parallel.local_form import LocalForm

if TYPE_CHECKING:
    from longca.parallel.local import LocalKernel


def load() -> LocalKernel:
    """FlashAttention 2's calls."""
    from longca.parallel.flash_attention import generation_2
    from longca.parallel.rectangle_kernel import RectangleKernel

    return RectangleKernel(generation_2())


def backend(plan: Any) -> str:
    """What runs, on which form of rectangle."""
    return f"flash-attn 2, {'causal' if plan.causal else 'full'}"


KERNEL = LocalForm(
    summary="FlashAttention 2 on a rank: full and causal rectangles",
    support=Support(
        patterns=frozenset(PATTERNS),
        passes={"cuda": ("forward", "backward")},
        capability=(8, 0),
    ),
    load=load,
    backend=backend,
    imports=("torch", "flash_attn"),
    distributions=("torch", "flash-attn"),
    majors={"flash-attn": 2},
)
