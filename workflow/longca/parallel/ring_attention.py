"""Attention of a ring shard while KV circulates: one call of the local kernel for each owner, merged as it comes."""

from collections.abc import Sequence
from typing import Any

import torch

from longca.parallel.local import LocalCall, Pair, Setting, Triple
from longca.parallel.merge import MergedAttention, SummedGradient, exact_dtype
from longca.parallel.ring import Ring, circulate, circulate_back


class RingAttention:
    """A SequencePart over rings, the outermost first; over none it is the local kernel alone.

    index: the ring shard of this rank. All plans are made here, before anything is timed.
    """

    def __init__(self, rings: Sequence[Ring], index: int, setting: Setting) -> None:
        self._rings, self._index, self._kernel = tuple(rings), index, setting.kernel
        self._heads = setting.q_heads, setting.kv_heads
        self._rows = [shard.rows for shard in setting.sharding.shards]
        numbers = 2 * max(self._rows) * setting.kv_heads * setting.head_dim
        for ring in self._rings:  # KV comes from the rank before, and so do its gradients
            ring.link.reserve("kv", numbers * setting.dtype.itemsize, 1)
            ring.link.reserve("dkv", numbers * exact_dtype(setting.dtype).itemsize, 1)
        self._plans: list[Any] = [setting.plan_between(index, owner) for owner in range(len(self._rows))]

    @property
    def calls(self) -> list[LocalCall]:
        """See SequencePart."""
        return [
            LocalCall(self._rows[self._index], keys, *self._heads, plan)
            for keys, plan in zip(self._rows, self._plans, strict=True)
            if plan is not None
        ]

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Pair:
        """See SequencePart."""
        merged = MergedAttention(len(self.calls))

        def visit(owner: int, kv: Pair) -> None:
            if self._plans[owner] is not None:
                merged.add(*self._kernel.forward(q, *kv, self._plans[owner]))

        circulate(self._rings, self._rows, self._index, (k, v), visit)
        return merged.result(q)

    def backward(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        out: torch.Tensor,
        lse: torch.Tensor,
        dout: torch.Tensor,
    ) -> Triple:
        """See SequencePart."""
        dq = SummedGradient(len(self.calls))

        def visit(owner: int, kv: Pair) -> Pair | None:
            if self._plans[owner] is None:
                return None
            part, dk, dv = self._kernel.backward(q, *kv, out, lse, dout, self._plans[owner])
            dq.add(part)
            return dk, dv

        dkv = circulate_back(self._rings, self._rows, self._index, (k, v), visit, dq.settle)
        if dkv is None:
            return dq.result(q), torch.zeros_like(k), torch.zeros_like(v)
        return dq.result(q), dkv[0].to(k.dtype), dkv[1].to(v.dtype)
