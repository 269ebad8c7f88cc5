"""What a static pattern is: how its slices are built, and which cells they must keep."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from longca.masks.slices import Slice

DEFAULT_PARAMETERS = {"window": 1024, "global_tokens": 1024, "block": 1024}
SMALLEST_PARAMETER = {"window": 0, "global_tokens": 0, "block": 1, "prefix": 0}

Documents = tuple[int, ...]
Parameters = Mapping[str, int]


class Tokens:
    """The documents of a sequence seen from its tokens: int64 [seqlen] arrays `document` and `start`.

    document: number of the token's document; start: position of that document's first token; last: number of
    the last document, which keeps it even if it has no tokens.
    """

    def __init__(self, documents: Sequence[int]) -> None:
        lengths = np.array(documents, np.int64)
        self.document = np.repeat(np.arange(len(lengths)), lengths)
        self.start = np.repeat(np.cumsum(lengths) - lengths, lengths)
        self.last = len(lengths) - 1


Keeps = Callable[[np.ndarray, np.ndarray, Tokens, Parameters], np.ndarray]
Draw = Callable[[random.Random, int, Documents, Parameters], tuple[Documents, dict[str, int]]]


def _draw_nothing(
    rng: random.Random, seqlen: int, documents: Documents, parameters: Parameters
) -> tuple[Documents, dict[str, int]]:
    return documents, dict(parameters)


@dataclass(frozen=True)
class Pattern:
    """One static pattern.

    summary: what it is for, one sentence. rule: the predicate in words and symbols. takes_documents: its
    documents are sampled from a dataset. parameters: the names it takes. build(seqlen, documents, parameters)
    -> slices; documents is empty where the pattern has none. keeps(i, j, tokens, parameters) -> bool,
    broadcast over i and j: the specification, independent of `build`. draw(rng, seqlen, documents,
    parameters) -> documents and parameters completed by the pattern's own draws; what is given is left as it
    is. draws_documents: `draw` makes the documents.
    """

    name: str
    summary: str
    rule: str
    build: Callable[[int, Documents, Parameters], list[Slice]]
    keeps: Keeps
    takes_documents: bool = False
    parameters: tuple[str, ...] = ()
    draw: Draw = _draw_nothing
    draws_documents: bool = False

    @property
    def has_documents(self) -> bool:
        """Whether a mask of this pattern is made of documents, sampled or its own."""
        return self.takes_documents or self.draws_documents

    @property
    def is_drawn(self) -> bool:
        """Whether samples of it differ: its documents are sampled, or it draws something of its own."""
        return self.takes_documents or self.draw is not _draw_nothing


def spans(documents: Documents) -> list[tuple[int, int]]:
    """Half-open token ranges of the documents that have tokens."""
    ends = np.cumsum(documents, dtype=np.int64).tolist()
    return [(end - length, end) for end, length in zip(ends, documents, strict=True) if length]
