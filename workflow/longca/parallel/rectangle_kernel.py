"""A local kernel out of a library's calls on one full or causal rectangle."""

from collections.abc import Sequence
from typing import Protocol

import torch

from longca.kernels.interface import UnsupportedError
from longca.masks.slices import Slice
from longca.parallel.local import Pair, Triple
from longca.parallel.rectangle import Rectangle, find_rectangle


class Library(Protocol):
    """Attention as a library has it, over [heads, rows, D] views whose last dimension is contiguous.

    causal: aligned at the bottom right. out, dq, dk, dv are written where they stand; lse is fp32 [heads, rows].
    """

    def forward(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor, causal: bool
    ) -> torch.Tensor:
        """Write out; lse."""

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
        """Write dq, dk, dv through the softmax that out and lse belong to."""


class RectangleKernel:
    """A LocalKernel over a Library: rows and keys outside the rectangle get what keeping nothing gives.

    square: whether the library computes a causal rectangle only where it has as many queries as keys.
    """

    def __init__(self, library: Library, square: bool = False) -> None:
        self._library, self._square = library, square

    def plan(
        self,
        slices: Sequence[Slice],
        queries: int,
        keys: int,
        q_heads: int,
        kv_heads: int,
        head_dim: int,
        dtype: torch.dtype,
        device: torch.device,
    ) -> Rectangle:
        """See LocalKernel; UnsupportedError for a mask that is no rectangle, or not one of this library's."""
        found = find_rectangle(slices, queries, keys)
        if self._square and found.causal and found.q1 - found.q0 != found.k1 - found.k0:
            raise UnsupportedError(
                "its causal part on this rank is not square, and is aligned at the other end"
            )
        return found

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, plan: Rectangle) -> Pair:
        """See LocalKernel."""
        q0, q1, k0, k1, causal = plan
        whole = q1 - q0 == q.shape[1]
        out = torch.empty_like(q) if whole else torch.zeros_like(q)
        part = self._library.forward(q[:, q0:q1], k[:, k0:k1], v[:, k0:k1], out[:, q0:q1], causal)
        if whole:
            return out, part
        lse = q.new_full(q.shape[:2], -torch.inf, dtype=torch.float32)
        lse[:, q0:q1] = part
        return out, lse

    def backward(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        out: torch.Tensor,
        lse: torch.Tensor,
        dout: torch.Tensor,
        plan: Rectangle,
    ) -> Triple:
        """See LocalKernel."""
        q0, q1, k0, k1, causal = plan
        dq = _gradient(q, q0, q1)
        dk, dv = (_gradient(x, k0, k1) for x in (k, v))
        rows, columns = slice(q0, q1), slice(k0, k1)
        self._library.backward(
            q[:, rows],
            k[:, columns],
            v[:, columns],
            out[:, rows],
            lse[:, rows].contiguous(),
            dout[:, rows],
            (dq[:, rows], dk[:, columns], dv[:, columns]),
            causal,
        )
        return dq, dk, dv


def packed(x: torch.Tensor) -> torch.Tensor:
    """A view [1, rows, heads, D] of [heads, rows, D], as flash-attention's libraries take tensors."""
    return x.transpose(0, 1)[None]


def _gradient(like: torch.Tensor, first: int, last: int) -> torch.Tensor:
    """Room for a gradient of which [first, last) will be written; 0 elsewhere."""
    return torch.empty_like(like) if last - first == like.shape[1] else torch.zeros_like(like)
