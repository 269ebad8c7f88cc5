"""How a mechanism's two layers meet: heads divided over the Ulysses group, the sequence over the ring."""

from dataclasses import dataclass
from typing import Protocol

import torch

from longca.parallel.local import LocalCall, SequencePart, Triple

Saved = tuple[torch.Tensor, ...]


class Spread(Protocol):
    """Attention on a rank's own tokens: q [q_heads, rows, D], k, v [kv_heads, rows, D]. Collective, stateless."""

    @property
    def calls(self) -> list[LocalCall]:
        """The local kernel's calls in a forward, and again in a backward."""

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, Saved]:
        """out like q, and what `backward` and `lse` need."""

    def backward(self, saved: Saved, dout: torch.Tensor) -> Triple:
        """dq, dk, dv like q, k, v."""

    def lse(self, saved: Saved) -> torch.Tensor:
        """[q_heads, rows] in exact precision."""


@dataclass(frozen=True)
class RingOnly:
    """A rank holds a ring shard of its own, with all heads: U = 1."""

    part: SequencePart

    @property
    def calls(self) -> list[LocalCall]:
        """See Spread."""
        return self.part.calls

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, Saved]:
        """See Spread."""
        out, lse = self.part.forward(q, k, v)
        return out, (q, k, v, out, lse)

    def backward(self, saved: Saved, dout: torch.Tensor) -> Triple:
        """See Spread."""
        q, k, v, out, lse = saved
        return self.part.backward(q, k, v, out, lse, dout)

    def lse(self, saved: Saved) -> torch.Tensor:
        """See Spread."""
        return saved[4]
