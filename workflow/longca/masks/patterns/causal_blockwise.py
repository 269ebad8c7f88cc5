"""Demonstrations that do not see each other, and a query that sees them all."""

import numpy as np

from longca.masks.patterns.pattern import Documents, Parameters, Pattern, Tokens, spans
from longca.masks.slices import Slice


def _build(seqlen: int, documents: Documents, parameters: Parameters) -> list[Slice]:
    slices = [Slice(start, end, start, end, "causal") for start, end in spans(documents)]
    last = seqlen - documents[-1]
    if 0 < last < seqlen:
        slices.insert(-1, Slice(last, seqlen, 0, last, "full"))
    return slices


def _keeps(i: np.ndarray, j: np.ndarray, tokens: Tokens, parameters: Parameters) -> np.ndarray:
    own = (tokens.document[i] == tokens.document[j]) & (j <= i)
    return own | ((tokens.document[i] == tokens.last) & (tokens.document[j] != tokens.last))


CAUSAL_BLOCKWISE = Pattern(
    name="causal_blockwise",
    summary="Documents see themselves, the last one sees all: in-context learning from examples.",
    rule="(same document and j <= i) or (i in the last document and j not in it)",
    takes_documents=True,
    build=_build,
    keeps=_keeps,
)
