"""Attention of a ring shard to all keys at once, gathered a few KV heads at a time.

The gather of the next heads runs under the attention of these, and so does the sum of the gradients of the
heads before: two buffers of gathered KV, whatever the number of heads. Shards of unequal length are gathered
with the rows of the longest; the rows past a shard's end are in no slice.
"""

from dataclasses import replace
from typing import Any

import torch

from longca.parallel.communication import Link, Moving
from longca.parallel.local import LocalCall, Pair, Setting, Triple
from longca.parallel.merge import exact_dtype
from longca.parallel.work import local_slices

MOST_CHUNKS = 4  # enough to hide all but a quarter of the first gather; more makes calls too small for a GPU


class GatherAttention:
    """A SequencePart over an all-gather of K and V, and a reduce-scatter of dK and dV in exact precision."""

    def __init__(self, link: Link, setting: Setting) -> None:
        self._link, self._kernel = link, setting.kernel
        shards = setting.sharding.shards
        self._most = max(shard.rows for shard in shards)
        chunks = next(n for n in range(MOST_CHUNKS, 0, -1) if setting.kv_heads % n == 0)
        self._kv_each, self._q_each = setting.kv_heads // chunks, setting.q_heads // chunks
        self._chunks = chunks
        queries = shards[link.index]
        self._rows = queries.rows
        slices = [
            piece
            for owner, keys in enumerate(shards)
            for piece in local_slices(setting.slices, queries, keys, owner * self._most)
        ]
        numbers = 2 * self._most * setting.kv_heads * setting.head_dim
        link.reserve("kv", numbers * setting.dtype.itemsize, link.size - 1)
        link.reserve("dkv", numbers * exact_dtype(setting.dtype).itemsize, link.size - 1)
        heads = replace(setting, q_heads=self._q_each, kv_heads=self._kv_each)
        self._plan: Any = heads.plan(slices, queries.rows, self._most * len(shards))

    @property
    def calls(self) -> list[LocalCall]:
        """See SequencePart."""
        call = LocalCall(self._rows, self._most * self._link.size, self._q_each, self._kv_each, self._plan)
        return [call] * self._chunks if self._plan is not None else []

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Pair:
        """See SequencePart."""
        lse = torch.full(q.shape[:2], -torch.inf, dtype=exact_dtype(q.dtype), device=q.device)
        out = self._filled(q)
        gathering = _Gathering(self._link, k, v, self._kv_each, self._most)
        for chunk in range(self._chunks):
            kv = gathering.take(chunk)
            if self._plan is not None:
                heads = self._q_heads(chunk)
                out[heads], lse[heads] = self._kernel.forward(q[heads], *kv, self._plan)
        return out, lse

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
        dq = self._filled(q)
        exact = exact_dtype(k.dtype)
        shape = (k.shape[0], self._most, k.shape[2])
        dk, dv = (k.new_empty(shape, dtype=exact) for _ in range(2))
        gathering = _Gathering(self._link, k, v, self._kv_each, self._most)
        summing = Moving(())
        for chunk in range(self._chunks):
            kv = gathering.take(chunk)
            if self._plan is None:
                parts: Pair = (torch.zeros_like(kv[0], dtype=exact), torch.zeros_like(kv[1], dtype=exact))
            else:
                heads = self._q_heads(chunk)
                dq[heads], *gradients = self._kernel.backward(
                    q[heads], *kv, out[heads], lse[heads], dout[heads], self._plan
                )
                parts = gradients[0].to(exact), gradients[1].to(exact)
            summing.wait()
            own = slice(chunk * self._kv_each, (chunk + 1) * self._kv_each)
            totals = [(total[own], part) for part, total in zip(parts, (dk, dv), strict=True)]
            summing = self._link.reduce_scatter(totals, "dkv")
        summing.wait()
        rows = k.shape[1]
        return dq, dk[:, :rows].to(k.dtype).contiguous(), dv[:, :rows].to(v.dtype).contiguous()

    def _filled(self, q: torch.Tensor) -> torch.Tensor:
        """Like q: 0 where nothing is computed; else every chunk of heads writes its part."""
        return torch.zeros_like(q) if self._plan is None else torch.empty_like(q)

    def _q_heads(self, chunk: int) -> slice:
        return slice(chunk * self._q_each, (chunk + 1) * self._q_each)


class _Gathering:
    """K and V of all ranks, chunk after chunk of heads, one chunk ahead of where they are used."""

    def __init__(self, link: Link, k: torch.Tensor, v: torch.Tensor, heads: int, most: int) -> None:
        self._link, self._heads = link, heads
        self._own = [_lengthened(x, most) for x in (k, v)]
        shape = (2, heads, most * link.size, k.shape[2])
        self._buffers = [k.new_empty(shape) for _ in range(1 if heads == k.shape[0] else 2)]
        self._arriving = self._start(0)

    def take(self, chunk: int) -> Pair:
        """k, v [heads, all rows, D] of a chunk, after the one before; they hold until the next but one."""
        self._arriving.wait()
        self._arriving = self._start(chunk + 1)
        buffer = self._buffers[chunk % len(self._buffers)]
        return buffer[0], buffer[1]

    def _start(self, chunk: int) -> Moving:
        first = chunk * self._heads
        if first == self._own[0].shape[0]:
            return Moving(())
        buffer = self._buffers[chunk % len(self._buffers)]
        heads = slice(first, first + self._heads)
        return self._link.all_gather(
            [(own[heads], whole) for own, whole in zip(self._own, buffer, strict=True)], "kv"
        )


def _lengthened(x: torch.Tensor, rows: int) -> torch.Tensor:
    """x [heads, n, D] with zero rows added up to `rows`; x itself where none are missing."""
    if x.shape[1] == rows:
        return x
    return torch.nn.functional.pad(x, (0, 0, 0, rows - x.shape[1]))
