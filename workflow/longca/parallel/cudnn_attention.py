"""cuDNN's attention through torch's operators as a library of rectangles: they take [1, heads, rows, D], and give lse.

A causal mask is aligned at the top left, so that a causal rectangle has to be square.
"""

from collections.abc import Callable
from typing import Any

import torch

from longca.parallel.local import Triple


class CudnnAttention:
    """A Library over the pair of operators that torch dispatches its cuDNN backend to."""

    def __init__(
        self,
        forward: Callable[..., Any] = torch.ops.aten._scaled_dot_product_cudnn_attention,
        backward: Callable[..., Any] = torch.ops.aten._scaled_dot_product_cudnn_attention_backward,
    ) -> None:
        self._forward, self._backward = forward, backward

    def forward(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor, causal: bool
    ) -> torch.Tensor:
        """See Library."""
        no_bias, keeps_lse, dropout = None, True, 0.0
        result, lse, *_ = self._forward(
            q[None], k[None], v[None], no_bias, keeps_lse, dropout, causal, scale=q.shape[-1] ** -0.5
        )
        out.copy_(result[0])
        return lse.reshape(q.shape[:2])

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
        seed = torch.zeros((), dtype=torch.int64, device=q.device)  # of a dropout that is not
        no_bias, no_lengths, dropout = None, (None, None), 0.0
        found = self._backward(
            *(x[None] for x in (dout, q, k, v, out)),
            lse[None, ..., None],
            *(seed, seed, no_bias, *no_lengths, q.shape[1], k.shape[1], dropout, causal),
            scale=q.shape[-1] ** -0.5,
        )
        for gradient, target in zip(found, gradients, strict=True):
            target.copy_(gradient[0])
