"""Ulysses around any sequence part: heads are exchanged for tokens before it, and back after it.

The heads of a rank may go in chunks: the exchange of a chunk then runs under the attention of the one before.
"""

from collections.abc import Callable
from functools import partial

import torch

from longca.parallel.communication import Moving
from longca.parallel.head_exchange import HeadExchange, replicated_kv_heads
from longca.parallel.local import LocalCall, Pair, SequencePart, Triple
from longca.parallel.merge import exact_dtype
from longca.parallel.spread import Saved


class HeadParallel:
    """A Spread over U ranks that share a ring shard.

    part: made for the heads of one of `chunks` chunks of a rank's heads.
    """

    def __init__(
        self, exchange: HeadExchange, part: SequencePart, q_heads: int, kv_heads: int, chunks: int
    ) -> None:
        self._exchange, self._part, self._chunks = exchange, part, chunks
        self._q_heads, self._kv_heads = q_heads, kv_heads
        self._replicated = replicated_kv_heads(q_heads, kv_heads, exchange.ranks)
        self._q_each, self._kv_each = q_heads // exchange.ranks, self._replicated // exchange.ranks

    @property
    def calls(self) -> list[LocalCall]:
        """See Spread."""
        return self._part.calls * self._chunks

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, Saved]:
        """See Spread. Saved are, of the shard and this rank's heads: q, k, v, out, lse."""
        wide = tuple(
            x.new_empty((heads, self._exchange.rows, x.shape[2]))
            for x, heads in ((q, self._q_each), (k, self._kv_each), (v, self._kv_each))
        )
        out = torch.empty_like(q)
        fetch = partial(self._fetch, ((q, "q"), (k, "kv"), (v, "kv")), wide)
        parts: list[Pair] = []
        returning: list[Moving] = []
        arriving = fetch(0)
        for chunk in range(self._chunks):
            _wait(arriving)
            arriving = fetch(chunk + 1)
            wide_q, wide_k, wide_v = (self._of_chunk(x, chunk) for x in wide)
            parts.append(self._part.forward(wide_q, wide_k, wide_v))
            returning.append(
                self._exchange.to_tokens(parts[-1][0], out, self._head_of(self._q_each, chunk), "out")
            )
        _wait(returning)
        outs, lses = zip(*parts, strict=True)
        return out, (*wide, *outs, *lses)

    def backward(self, saved: Saved, dout: torch.Tensor) -> Triple:
        """See Spread. Gradients of repeated KV heads are summed in exact precision."""
        wide, outs, lses = saved[:3], saved[3 : 3 + self._chunks], saved[3 + self._chunks :]
        local_rows, head_dim = dout.shape[1:]
        wide_dout = torch.empty_like(wide[0])
        dq = torch.empty_like(dout)
        dk, dv = (dout.new_empty((self._replicated, local_rows, head_dim)) for _ in range(2))
        fetch = partial(self._fetch, ((dout, "dout"),), (wide_dout,))
        returning: list[Moving] = []
        arriving = fetch(0)
        for chunk in range(self._chunks):
            _wait(arriving)
            arriving = fetch(chunk + 1)
            q, k, v, gradient_out = (self._of_chunk(x, chunk) for x in (*wide, wide_dout))
            gradients = self._part.backward(q, k, v, outs[chunk], lses[chunk], gradient_out)
            for gradient, local, each in zip(
                gradients, (dq, dk, dv), (self._q_each, self._kv_each, self._kv_each), strict=True
            ):
                purpose = "dq" if local is dq else "dkv"
                returning.append(
                    self._exchange.to_tokens(gradient, local, self._head_of(each, chunk), purpose)
                )
        _wait(returning)
        return dq, self._summed(dk), self._summed(dv)

    def lse(self, saved: Saved) -> torch.Tensor:
        """See Spread. An exchange of its own, since attention itself does not need it."""
        wide = torch.cat(saved[3 + self._chunks :])[..., None]
        begin, end = self._exchange.own_span
        local = wide.new_empty((self._q_heads, end - begin, 1))
        self._exchange.to_tokens(wide, local, lambda peer, j: peer * self._q_each + j, "lse").wait()
        return local[..., 0]

    def _fetch(
        self, locals_: tuple[tuple[torch.Tensor, str], ...], wide: tuple[torch.Tensor, ...], chunk: int
    ) -> list[Moving]:
        """Starts a chunk's way from tokens to heads; nothing past the last chunk."""
        if chunk == self._chunks:
            return []
        return [
            self._exchange.to_heads(
                local, self._of_chunk(target, chunk), self._head_of(target.shape[0], chunk, local), purpose
            )
            for (local, purpose), target in zip(locals_, wide, strict=True)
        ]

    def _of_chunk(self, wide: torch.Tensor, chunk: int) -> torch.Tensor:
        each = wide.shape[0] // self._chunks
        return wide[chunk * each : (chunk + 1) * each]

    def _head_of(self, each: int, chunk: int, local: torch.Tensor | None = None) -> Callable[[int, int], int]:
        """Which head is head j of a peer's chunk; of `local`, whose heads may be fewer than the repeated ones."""
        first = chunk * (each // self._chunks)
        repeats = 1 if local is None else each * self._exchange.ranks // local.shape[0]
        return lambda peer, j: (peer * each + first + j) // repeats

    def _summed(self, gradient: torch.Tensor) -> torch.Tensor:
        if self._replicated == self._kv_heads:
            return gradient
        copies = gradient.unflatten(0, (self._kv_heads, self._replicated // self._kv_heads))
        return copies.sum(1, dtype=exact_dtype(gradient.dtype)).to(gradient.dtype)


def _wait(moving: list[Moving]) -> None:
    for one in moving:
        one.wait()
