"""A prefix seen in full, and the rest causal."""

import random

import numpy as np

from longca.masks.patterns.pattern import Documents, Parameters, Pattern, Tokens, spans
from longca.masks.slices import Slice


def _prefixed(start: int, end: int, prefix: int) -> list[Slice]:
    seen = min(start + prefix, end)
    slices = [Slice(start, seen, start, seen, "full"), Slice(seen, end, start, end, "causal")]
    return [piece for piece in slices if piece.q0 < piece.q1]


def _build_document(seqlen: int, documents: Documents, parameters: Parameters) -> list[Slice]:
    return [piece for start, end in spans(documents) for piece in _prefixed(start, end, parameters["prefix"])]


def _keeps_document(i: np.ndarray, j: np.ndarray, tokens: Tokens, parameters: Parameters) -> np.ndarray:
    same = tokens.document[i] == tokens.document[j]
    return same & ((j <= i) | (j - tokens.start[j] < parameters["prefix"]))


def _draw(
    rng: random.Random, seqlen: int, documents: Documents, parameters: Parameters
) -> tuple[Documents, dict[str, int]]:
    # A first document given without tokens still needs a prefix.
    longest = max(1, documents[0]) if documents else seqlen
    drawn = {"prefix": rng.randint(1, longest)}
    return documents, {**drawn, **parameters}


PREFIX_LM_CAUSAL = Pattern(
    name="prefix_lm_causal",
    summary="A prefix of the sequence is seen by all, the rest is causal.",
    rule="j <= i or j < prefix",
    parameters=("prefix",),
    build=lambda seqlen, documents, parameters: _prefixed(0, seqlen, parameters["prefix"]),
    keeps=lambda i, j, tokens, parameters: (j <= i) | (j < parameters["prefix"]),
    draw=_draw,
)

PREFIX_LM_DOCUMENT = Pattern(
    name="prefix_lm_document",
    summary="Packed documents that do not see each other, each with a prefix its own tokens see in full.",
    rule="same document and (j <= i or j - document start < prefix)",
    takes_documents=True,
    parameters=("prefix",),
    build=_build_document,
    keeps=_keeps_document,
    draw=_draw,
)
