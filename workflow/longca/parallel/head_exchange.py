"""The all-to-all of Ulysses: from all heads of a rank's tokens to all tokens of a rank's heads, and back.

One message a peer and tensor. A message a head would need no packing, but it costs the host more than packing costs the
device: so done, two H200s took 1.4 ms for 144 MiB of 64 heads. A rank's heads of its own tokens are one block of memory
as they stand; its tokens of its own heads are packed before they are sent, and unpacked when they have arrived.
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
        n, mine = shard.shape[0], self._link.index
        sends = [(_heads(local, peer, n, head_of), peer) for peer in self._peers]
        moving = self._link.move(sends, [(self._rows(shard, peer), peer) for peer in self._peers], purpose)
        self._rows(shard, mine).copy_(_heads(local, mine, n, head_of))
        return moving

    def to_tokens(self, shard: torch.Tensor, local: torch.Tensor, head_of: HeadOf, purpose: str) -> Moving:
        """shard [n, all rows, D] -> local [heads, own rows, D], the way back; here no head serves several."""
        n, mine = shard.shape[0], self._link.index
        sends = [(self._rows(shard, peer), peer) for peer in self._peers]
        receives = [(_heads(local, peer, n, head_of), peer) for peer in self._peers]
        moving = self._link.move(sends, receives, purpose)
        _heads(local, mine, n, head_of).copy_(self._rows(shard, mine))
        return moving

    def reserve(self, purpose: str, heads: int, row_bytes: int) -> None:
        """Says that a rank's messages of `purpose` are of up to so many heads, so many bytes a row and head."""
        most = max(end - begin for begin, end in self._spans)
        self._link.reserve(purpose, most * heads * row_bytes, self._link.size - 1)

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

    def _rows(self, shard: torch.Tensor, peer: int) -> torch.Tensor:
        begin, end = self._spans[peer]
        return shard[:, begin:end]


def _heads(local: torch.Tensor, peer: int, n: int, head_of: HeadOf) -> torch.Tensor:
    """The heads of `local` that are a peer's n heads: a part of it where they follow each other, else a copy."""
    heads = [head_of(peer, j) for j in range(n)]
    if heads == list(range(heads[0], heads[0] + n)):
        return local[heads[0] : heads[0] + n]
    return torch.stack([local[head] for head in heads])
