"""Attention spread over ranks, as a user calls it."""

from dataclasses import replace
from typing import Any

import torch

from longca.errors import LongcaError
from longca.parallel.form import Form
from longca.parallel.groups import Groups
from longca.parallel.head_exchange import HeadExchange, replicated_kv_heads
from longca.parallel.head_parallel import HeadParallel
from longca.parallel.local import LocalCall, Setting, Triple
from longca.parallel.merge import exact_dtype
from longca.parallel.sharding import Sharding
from longca.parallel.shards import Shard
from longca.parallel.spread import RingOnly, Saved, Spread
from longca.parallel.topology import Topology


def rank_shard(sharding: Sharding, topology: Topology, rank: int) -> Shard:
    """The tokens of a rank: the part of its ring shard that its place in the Ulysses group gives it."""
    ulysses, ring = topology.coordinates(rank)
    shard = sharding.shards[ring]
    return shard.cut(*shard.spans(topology.ulysses)[ulysses])


class Mechanism:
    """One mechanism for one mask and shape, on this rank's own tokens. Made and called by all ranks together.

    form: one of the registry. head_chunks: parts of a rank's heads whose all-to-all runs under the attention of
    the part before (1: none does). Plans for the local kernel are made here.

    Raises:
        LongcaError: a topology the form is not for, a sharding of another ring, chunks that do not divide.
        UnsupportedError: heads that do not divide over the Ulysses group.
    """

    def __init__(self, form: Form, groups: Groups, setting: Setting, head_chunks: int = 1) -> None:
        topology = groups.topology
        reason = form.reason_against(topology)
        if reason:
            raise LongcaError(f"topology {reason}")
        if len(setting.sharding.shards) != topology.ring:
            raise LongcaError(
                f"sharding has {len(setting.sharding.shards)} shards; must have ring={topology.ring}"
            )
        self.setting = setting
        self.shard = rank_shard(setting.sharding, topology, groups.rank)
        self.traffic = groups.traffic
        self._spread = _spread(form, groups, setting, head_chunks)
        self._saved: Saved | None = None

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        """out like q [q_heads, rows, D]; k, v [kv_heads, rows, D]; contiguous, rows as `shard` says.

        Padding rows are 0 and attended to by nobody. Kept for `backward` and `lse` until the next forward.

        Raises:
            ValueError: for tensors that are not of the setting.
        """
        self._check(q=q, k=k, v=v)
        out, self._saved = self._spread.forward(q, k, v)
        return out

    def backward(self, dout: torch.Tensor) -> Triple:
        """dq, dk, dv of the last forward, like q, k, v."""
        self._check(dout=dout)
        return self._spread.backward(self._last(), dout)

    def lse(self) -> torch.Tensor:
        """lse [q_heads, rows] of the last forward: natural logarithm, -inf for rows that keep nothing.

        Collective, and where heads are divided it costs an exchange that attention itself does without.
        """
        return self._spread.lse(self._last())

    def release(self) -> None:
        """Drops what the last forward kept."""
        self._saved = None

    @property
    def calls(self) -> list[LocalCall]:
        """This rank's calls of the local kernel in a forward, and again in a backward: its computation alone.

        Made over a kernel whose plans are None, a mechanism makes none of them: its communication alone.
        """
        return self._spread.calls

    def attention(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        """`forward` for autograd: differentiable in q, k and v, any number of times before a backward."""
        self._check(q=q, k=k, v=v)
        return _Attention.apply(q, k, v, self._spread)

    def _last(self) -> Saved:
        if self._saved is None:
            raise ValueError("call forward first")
        return self._saved

    def _check(self, **tensors: torch.Tensor) -> None:
        setting = self.setting
        for name, tensor in tensors.items():
            heads = setting.kv_heads if name in ("k", "v") else setting.q_heads
            shape = (heads, self.shard.rows, setting.head_dim)
            if tensor.shape != shape or tensor.dtype != setting.dtype or not tensor.is_contiguous():
                raise ValueError(
                    f"{name} is {tuple(tensor.shape)} {tensor.dtype}; must be contiguous {shape} {setting.dtype}"
                )


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, spread: Spread) -> torch.Tensor:
        out, saved = spread.forward(q, k, v)
        ctx.save_for_backward(*saved)
        ctx.spread = spread
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        return *ctx.spread.backward(ctx.saved_tensors, gradients[0].contiguous()), None


def _spread(form: Form, groups: Groups, setting: Setting, head_chunks: int) -> Spread:
    topology = groups.topology
    _, ring = topology.coordinates(groups.rank)
    if topology.ulysses == 1:
        if head_chunks != 1:
            raise LongcaError(f"head_chunks={head_chunks}: must be 1 where ulysses=1, no heads are exchanged")
        return RingOnly(form.sequence(groups, ring, setting))
    replicated = replicated_kv_heads(setting.q_heads, setting.kv_heads, topology.ulysses)
    q_each, kv_each = setting.q_heads // topology.ulysses, replicated // topology.ulysses
    if head_chunks < 1 or kv_each % head_chunks:
        raise LongcaError(f"head_chunks={head_chunks}: must divide the {kv_each} KV heads of a rank")
    chunk = replace(setting, q_heads=q_each // head_chunks, kv_heads=kv_each // head_chunks)
    exchange = HeadExchange(groups.ulysses, setting.sharding.shards[ring].spans(topology.ulysses))
    row = setting.head_dim * setting.dtype.itemsize
    for purpose, heads in {
        "q": q_each,
        "kv": 2 * kv_each,
        "out": q_each,
        "dout": q_each,
        "dq": q_each,
    }.items():
        exchange.reserve(purpose, heads, row)
    exchange.reserve("dkv", 2 * kv_each, row)
    exchange.reserve("lse", q_each, exact_dtype(setting.dtype).itemsize)
    part = form.sequence(groups, ring, chunk)
    return HeadParallel(exchange, part, setting.q_heads, setting.kv_heads, head_chunks)
