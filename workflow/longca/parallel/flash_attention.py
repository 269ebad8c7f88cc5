"""FlashAttention's generations as libraries of rectangles: their functional forms, which give and take lse.

They take [1, rows, heads, D] in any order of strides whose last dimension is contiguous, so that nothing is transposed.
"""

from collections.abc import Callable
from typing import Any

import torch

from longca.parallel.local import Triple


class FlashAttention:
    """A Library over a pair of calls. forward(q, k, v, scale, causal) gives out and lse; backward writes gradients."""

    def __init__(self, forward: Callable[..., Any], backward: Callable[..., Any]) -> None:
        self._forward, self._backward = forward, backward

    def forward(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor, causal: bool
    ) -> torch.Tensor:
        """See Library."""
        result, lse, *_ = self._forward(*map(_packed, (q, k, v)), _scale(q), causal)
        # As an operator of torch it may not write where it is told.
        out.copy_(result[0].transpose(0, 1))
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
        tensors = map(_packed, (dout, q, k, v, out))
        self._backward(*tensors, lse[None], *map(_packed, gradients), _scale(q), causal)


def generation_2() -> FlashAttention:
    """flash-attn 2."""
    from flash_attn import flash_attn_interface as library

    no_window = {"window_size_left": -1, "window_size_right": -1, "softcap": 0.0, "alibi_slopes": None}

    def forward(q: Any, k: Any, v: Any, scale: float, causal: bool) -> Any:
        return library._flash_attn_forward(
            q, k, v, dropout_p=0.0, softmax_scale=scale, causal=causal, return_softmax=False, **no_window
        )

    def backward(
        dout: Any,
        q: Any,
        k: Any,
        v: Any,
        out: Any,
        lse: Any,
        dq: Any,
        dk: Any,
        dv: Any,
        scale: float,
        causal: bool,
    ) -> None:
        library._flash_attn_backward(
            *(dout, q, k, v, out, lse, dq, dk, dv),
            dropout_p=0.0,
            softmax_scale=scale,
            causal=causal,
            deterministic=False,
            **no_window,
        )

    return FlashAttention(forward, backward)


def generation_3() -> FlashAttention:
    """flash-attn 3."""
    import flash_attn_interface as library

    def forward(q: Any, k: Any, v: Any, scale: float, causal: bool) -> Any:
        return library._flash_attn_forward(q, k, v, softmax_scale=scale, causal=causal)

    def backward(
        dout: Any,
        q: Any,
        k: Any,
        v: Any,
        out: Any,
        lse: Any,
        dq: Any,
        dk: Any,
        dv: Any,
        scale: float,
        causal: bool,
    ) -> None:
        library._flash_attn_backward(
            *(dout, q, k, v, out, lse), dq=dq, dk=dk, dv=dv, softmax_scale=scale, is_causal=causal
        )

    return FlashAttention(forward, backward)


def generation_4() -> FlashAttention:
    """flash-attn 4."""
    from flash_attn.cute import interface as library

    def forward(q: Any, k: Any, v: Any, scale: float, causal: bool) -> Any:
        return library._flash_attn_fwd(q, k, v, softmax_scale=scale, causal=causal, return_lse=True)

    def backward(
        dout: Any,
        q: Any,
        k: Any,
        v: Any,
        out: Any,
        lse: Any,
        dq: Any,
        dk: Any,
        dv: Any,
        scale: float,
        causal: bool,
    ) -> None:
        library._flash_attn_bwd(
            *(q, k, v, out, dout, lse), softmax_scale=scale, causal=causal, dq=dq, dk=dk, dv=dv
        )

    return FlashAttention(forward, backward)


def _packed(x: torch.Tensor) -> torch.Tensor:
    """A view [1, rows, heads, D] of [heads, rows, D]."""
    return x.transpose(0, 1)[None]


def _scale(q: torch.Tensor) -> float:
    return float(q.shape[-1] ** -0.5)
