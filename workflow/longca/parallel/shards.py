"""Which tokens a rank holds, and in which rows of its tensors."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, pairwise
from typing import NamedTuple

import torch


class Piece(NamedTuple):
    """Tokens [begin, end) in consecutive rows, then `padding` rows that hold no token."""

    begin: int
    end: int
    padding: int = 0

    @property
    def rows(self) -> int:
        """Rows it takes."""
        return self.end - self.begin + self.padding


@dataclass(frozen=True)
class Shard:
    """The pieces of a rank, in order of tokens and of rows; a rank may hold none."""

    pieces: tuple[Piece, ...]

    @cached_property
    def offsets(self) -> tuple[int, ...]:
        """The row each piece starts at, and the rows in all."""
        return tuple(accumulate((piece.rows for piece in self.pieces), initial=0))

    @property
    def rows(self) -> int:
        """Rows of the rank's tensors, padding included."""
        return self.offsets[-1]

    @property
    def padding(self) -> int:
        """Rows without a token."""
        return sum(piece.padding for piece in self.pieces)

    def spans(self, parts: int) -> list[tuple[int, int]]:
        """Row ranges of `parts` consecutive parts that differ by one row at most."""
        cuts = [self.rows * i // parts for i in range(parts + 1)]
        return list(pairwise(cuts))

    def cut(self, first: int, last: int) -> "Shard":
        """The shard of rows [first, last)."""
        pieces = []
        for offset, (begin, end, padding) in zip(self.offsets, self.pieces, strict=False):
            top, bottom = max(first - offset, 0), min(last - offset, end - begin + padding)
            if top < bottom:
                start, stop = min(begin + top, end), min(begin + bottom, end)
                pieces.append(Piece(start, stop, bottom - top - (stop - start)))
        return Shard(tuple(pieces))


def joined(pieces: Iterable[Piece]) -> Shard:
    """A shard of pieces in order of tokens; neighbours without padding between them become one."""
    merged: list[Piece] = []
    for piece in pieces:
        if not piece.rows:
            continue
        if merged and merged[-1].end == piece.begin and not merged[-1].padding:
            merged[-1] = Piece(merged[-1].begin, piece.end, piece.padding)
        else:
            merged.append(piece)
    return Shard(tuple(merged))


def scatter(whole: torch.Tensor, shard: Shard) -> torch.Tensor:
    """A rank's rows [heads, rows, ...] of a whole tensor [heads, tokens, ...]; padding is 0. A copy."""
    local = whole.new_zeros((whole.shape[0], shard.rows, *whole.shape[2:]))
    for offset, (begin, end, _) in zip(shard.offsets, shard.pieces, strict=False):
        local[:, offset : offset + end - begin] = whole[:, begin:end]
    return local


def place(local: torch.Tensor, shard: Shard, whole: torch.Tensor) -> None:
    """The inverse of `scatter`: writes a rank's rows where their tokens stand; padding is dropped."""
    for offset, (begin, end, _) in zip(shard.offsets, shard.pieces, strict=False):
        whole[:, begin:end] = local[:, offset : offset + end - begin]
