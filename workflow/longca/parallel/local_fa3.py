"""FlashAttention 3 as a local kernel: a rank's part of the mask has to be one full or causal rectangle."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from longca.kernels.interface import Support
from longca.masks.patterns import PATTERNS
from longca.parallel.local_form import LocalForm

if TYPE_CHECKING:
    import torch

    from longca.parallel.local import LocalKernel, Triple


class _FlashAttention3:
    """A Library over flash_attn_interface, whose functional forms take [1, rows, heads, D] in any order of strides."""

    def __init__(self) -> None:
        import flash_attn_interface

        self._forward = flash_attn_interface._flash_attn_forward
        self._backward = flash_attn_interface._flash_attn_backward

    def forward(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor, causal: bool
    ) -> torch.Tensor:
        """See Library."""
        lse = self._forward(
            *map(_packed, (q, k, v)), out_=_packed(out), softmax_scale=_scale(q), causal=causal
        )[1]
        return lse[0]

    def backward(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        out: torch.Tensor,
        lse: torch.Tensor,
        dout: torch.Tensor,
        gradients: Triple,
        causal: bool,
    ) -> None:
        """See Library."""
        dq, dk, dv = map(_packed, gradients)
        self._backward(
            *map(_packed, (dout, q, k, v, out)),
            lse[None],
            dq=dq,
            dk=dk,
            dv=dv,
            softmax_scale=_scale(q),
            is_causal=causal,
        )


def _packed(x: torch.Tensor) -> torch.Tensor:
    """A view [1, rows, heads, D] of [heads, rows, D]."""
    return x.transpose(0, 1)[None]


def _scale(q: torch.Tensor) -> float:
    return float(q.shape[-1] ** -0.5)


def load() -> LocalKernel:
    """FlashAttention 3's calls."""
    from longca.parallel.rectangle_kernel import RectangleKernel

    return RectangleKernel(_FlashAttention3())


def backend(plan: Any) -> str:
    """What runs, on which form of rectangle."""
    return f"flash-attn 3, {'causal' if plan.causal else 'full'}"


KERNEL = LocalForm(
    summary="FlashAttention 3 on a rank: full and causal rectangles",
    support=Support(
        patterns=frozenset(PATTERNS),
        passes={"cuda": ("forward", "backward")},
        capability=(9, 0),
        capability_below=(10, 0),
    ),
    load=load,
    backend=backend,
    imports=("torch", "flash_attn_interface"),
    distributions=("torch", "flash-attn-3"),
)
