"""Ways to deal the tokens of a sequence to the ranks of a ring.

Only document_zigzag pads, as the paper's: there, documents are cut into equal chunks. The others give shards
that differ in length where the sequence does not divide.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from longca.errors import LongcaError
from longca.masks.slices import Slice
from longca.names import unknown_name
from longca.parallel.balance import deal_chunks
from longca.parallel.shards import Piece, Shard, joined
from longca.parallel.work import row_areas

ALIGN = 128  # chunks of `balanced` start at whole tiles of a kernel where the sequence is long enough
CHUNKS_EACH = 16  # chunks a rank gets in `balanced`, about
HEAVY = 4  # a chunk with more than this part of a rank's mean work is cut


@dataclass(frozen=True)
class Sharding:
    """The shards of a ring; every token of the sequence is in exactly one."""

    scheme: str
    seqlen: int
    shards: tuple[Shard, ...]


def contiguous(seqlen: int, ring: int, slices: Sequence[Slice], documents: Sequence[int]) -> list[Shard]:
    """Rank r holds the r-th of R equal parts."""
    return [joined([Piece(*part)]) for part in _parts(seqlen, ring)]


def zigzag(seqlen: int, ring: int, slices: Sequence[Slice], documents: Sequence[int]) -> list[Shard]:
    """Rank r holds parts r and 2R - 1 - r of 2R: equal work on a causal mask."""
    parts = [Piece(*part) for part in _parts(seqlen, 2 * ring)]
    return [joined([parts[r], parts[-1 - r]]) for r in range(ring)]


def document_zigzag(seqlen: int, ring: int, slices: Sequence[Slice], documents: Sequence[int]) -> list[Shard]:
    """Each document is padded to 2R equal chunks; rank r holds chunks r and 2R - 1 - r of every document."""
    pieces: list[list[Piece]] = [[] for _ in range(ring)]
    for start, end in pairwise(accumulate(documents, initial=0)):
        chunk = -(-(end - start) // (2 * ring))
        for r, mine in enumerate(pieces):
            for number in (r, 2 * ring - 1 - r):
                begin = min(start + number * chunk, end)
                stop = min(begin + chunk, end)
                mine.append(Piece(begin, stop, chunk - (stop - begin)))
    return [joined(mine) for mine in pieces]


def balanced(seqlen: int, ring: int, slices: Sequence[Slice], documents: Sequence[int]) -> list[Shard]:
    """Equal work a rank for any mask, by the exact area of each chunk; rows as equal as that leaves them.

    Chunks with more than their share of the work are halved, down to a tile.
    """
    size = -(-seqlen // (ring * CHUNKS_EACH))
    least = ALIGN if size >= ALIGN else 1
    size = size // least * least
    below = [0, *accumulate(row_areas(slices, seqlen).tolist())]
    share = below[-1] / (ring * HEAVY)
    pending = [(begin, min(begin + size, seqlen)) for begin in range(0, seqlen, size)]
    parts: list[Piece] = []
    while pending:
        begin, end = pending.pop()
        half = (end - begin) // 2 // least * least
        if half and below[end] - below[begin] > share:
            pending += [(begin, begin + half), (begin + half, end)]
        else:
            parts.append(Piece(begin, end))
    parts.sort()
    areas = [below[part.end] - below[part.begin] for part in parts]
    owners = deal_chunks(areas, [part.rows for part in parts], ring)
    return [
        joined(part for part, owner in zip(parts, owners, strict=True) if owner == r) for r in range(ring)
    ]


SHARDINGS: dict[str, Callable[[int, int, Sequence[Slice], Sequence[int]], list[Shard]]] = {
    "contiguous": contiguous,
    "zigzag": zigzag,
    "document_zigzag": document_zigzag,
    "balanced": balanced,
}


def shard_sequence(
    scheme: str, ring: int, seqlen: int, slices: Sequence[Slice], documents: Sequence[int] | None = None
) -> Sharding:
    """Deal `seqlen` tokens to `ring` shards. Without `documents` the sequence is one.

    Raises:
        LongcaError: for an unknown scheme, or documents that do not add up to the sequence.
    """
    if scheme not in SHARDINGS:
        raise LongcaError(unknown_name(scheme, SHARDINGS, "sharding"))
    lengths = (seqlen,) if documents is None else documents
    if sum(lengths) != seqlen:
        raise LongcaError(f"documents: add up to {sum(lengths)} tokens; must add up to seqlen {seqlen}")
    return Sharding(scheme, seqlen, tuple(SHARDINGS[scheme](seqlen, ring, slices, lengths)))


def _parts(seqlen: int, count: int) -> list[tuple[int, int]]:
    return list(pairwise(seqlen * i // count for i in range(count + 1)))
