"""The all-to-all of Ulysses: from all heads of a rank's tokens to all tokens of a rank's heads, and back.

Each head of each peer goes straight from its place in the one tensor to its place in the other: nothing is
packed, permuted or padded.
"""

from collections.abc import Callable, Sequence
from math import lcm

import torch

from longca.kernels.interface import UnsupportedError
from longca.parallel.communication import Link, Moving

Spans = Sequence[tuple[int, int]]
HeadOf = Callable[[int, int], int]


def replicated_kv_heads(q_heads: int, kv_heads: int, ulysses: int) -> int:
    """KV heads once each is repeated so that `ulysses` ranks share them evenly: lcm(kv_heads, ulysses).

    Where both divide the query heads, so does their least common multiple.

    Raises:
        UnsupportedError: when the ranks do not divide the query heads.
    """
    if q_heads % ulysses:
        raise UnsupportedError(f"{q_heads} query heads do not divide over {ulysses} Ulysses ranks")
    return lcm(kv_heads, ulysses)


class HeadExchange:
    """Among the ranks that share a ring shard; spans: the rows of the shard that each of them holds."""

    def __init__(self, link: Link, spans: Spans) -> None:
        self._link = link
        self._spans = spans
        self._peers = [peer for peer in range(link.size) if peer != link.index]

    def to_heads(self, local: torch.Tensor, shard: torch.Tensor, head_of: HeadOf, purpose: str) -> Moving:
        """local [heads, own rows, D] -> shard [n, all rows, D].

        head_of(peer, j): the head of `local` that is head j of the peer's shard tensor; a head may serve
        several.
        """
        mine, heads = self._link.index, range(shard.shape[0])
        sends = [(local[head_of(peer, j)], peer) for peer in self._peers for j in heads]
        receives = [(self._rows(shard[j], peer), peer) for peer in self._peers for j in heads]
        moving = self._link.move(sends, receives, purpose)
        for j in heads:
            self._rows(shard[j], mine).copy_(local[head_of(mine, j)])
        return moving

    def to_tokens(self, shard: torch.Tensor, local: torch.Tensor, head_of: HeadOf, purpose: str) -> Moving:
        """shard [n, all rows, D] -> local [heads, own rows, D], the way back; here no head serves several."""
        mine, heads = self._link.index, range(shard.shape[0])
        sends = [(self._rows(shard[j], peer), peer) for peer in self._peers for j in heads]
        receives = [(local[head_of(peer, j)], peer) for peer in self._peers for j in heads]
        moving = self._link.move(sends, receives, purpose)
        for j in heads:
            local[head_of(mine, j)].copy_(self._rows(shard[j], mine))
        return moving

    @property
    def ranks(self) -> int:
        """Ranks that share the shard: U."""
        return self._link.size

    @property
    def rows(self) -> int:
        """Rows of the shard."""
        return self._spans[-1][1]

    @property
    def own_span(self) -> tuple[int, int]:
        """The rows of the shard that this rank holds."""
        return self._spans[self._link.index]

    def _rows(self, head: torch.Tensor, peer: int) -> torch.Tensor:
        begin, end = self._spans[peer]
        return head[begin:end]
