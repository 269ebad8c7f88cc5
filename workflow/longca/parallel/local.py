"""The local kernel a mechanism stands on, and the calls a rank makes of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import torch

from longca.masks.slices import Slice
from longca.parallel.sharding import Sharding
from longca.parallel.work import local_slices

Pair = tuple[torch.Tensor, torch.Tensor]
Triple = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


class LocalKernel(Protocol):
    """Attention on one device that returns (out, lse); `longca.ops.segments` is one.

    Tensors are contiguous [heads, rows, D]; lse is the natural logarithm of the softmax's denominator, -inf
    for a row that keeps nothing, whose out is 0.
    """

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
    ) -> Any:
        """Lowers a mask for these shapes, outside what is timed; None if it is not to be called for them.

        May raise UnsupportedError.
        """

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, plan: Any) -> Pair:
        """out like q, lse [heads, rows]."""

    def backward(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        out: torch.Tensor,
        lse: torch.Tensor,
        dout: torch.Tensor,
        plan: Any,
    ) -> Triple:
        """dq, dk, dv through the softmax that out and lse, merged over all keys, belong to."""


class LocalCall(NamedTuple):
    """One call of the kernel in a pass: the rows and heads of its tensors, and its plan."""

    queries: int
    keys: int
    q_heads: int
    kv_heads: int
    plan: Any


@dataclass(frozen=True)
class Setting:
    """What a mechanism computes: the mask's slices, how its sequence is dealt, shapes, and the kernel."""

    slices: tuple[Slice, ...]
    sharding: Sharding
    q_heads: int
    kv_heads: int
    head_dim: int
    dtype: torch.dtype
    device: torch.device
    kernel: LocalKernel

    def plan(self, slices: Sequence[Slice], queries: int, keys: int) -> Any:
        """A plan of the kernel for all heads of this setting; None where there is nothing to compute."""
        if not slices:
            return None
        heads = (self.q_heads, self.kv_heads)
        return self.kernel.plan(slices, queries, keys, *heads, self.head_dim, self.dtype, self.device)

    def plan_between(self, index: int, owner: int) -> Any:
        """The plan for the queries of ring shard `index` and the keys of ring shard `owner`."""
        queries, keys = self.sharding.shards[index], self.sharding.shards[owner]
        return self.plan(local_slices(self.slices, queries, keys), queries.rows, keys.rows)


class SequencePart(Protocol):
    """Attention of a ring shard's queries to all keys, whichever way the keys come to hand.

    q [q_heads, rows, D], k, v [kv_heads, rows, D] are the ring shard's. Collective over the ring.
    """

    @property
    def calls(self) -> list[LocalCall]:
        """The kernel's calls in a forward, and again in a backward."""

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Pair:
        """out, lse."""

    def backward(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        out: torch.Tensor,
        lse: torch.Tensor,
        dout: torch.Tensor,
    ) -> Triple:
        """dq, dk, dv of the ring shard."""
