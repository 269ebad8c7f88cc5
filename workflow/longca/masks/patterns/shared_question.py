"""Several answers to one question."""

import numpy as np

from longca.masks.patterns.pattern import Documents, Parameters, Pattern, Tokens, spans
from longca.masks.slices import Slice


def _build(seqlen: int, documents: Documents, parameters: Parameters) -> list[Slice]:
    question = documents[0]
    slices = [Slice(start, end, start, end, "causal") for start, end in spans(documents)]
    if 0 < question < seqlen:
        slices.insert(1, Slice(question, seqlen, 0, question, "full"))
    return slices


def _keeps(i: np.ndarray, j: np.ndarray, tokens: Tokens, parameters: Parameters) -> np.ndarray:
    own = (tokens.document[i] == tokens.document[j]) & (j <= i)
    return own | ((tokens.document[j] == 0) & (tokens.document[i] != 0))


SHARED_QUESTION = Pattern(
    name="shared_question",
    summary="A question, and answers that see it and themselves: preference tuning.",
    rule="(same document and j <= i) or (j in document 0 and i not in it)",
    takes_documents=True,
    build=_build,
    keeps=_keeps,
)
