"""Documents generated a block at a time, as in video or block diffusion."""

import random

import numpy as np

from longca.masks.patterns.pattern import Documents, Parameters, Pattern, Tokens, spans
from longca.masks.slices import Slice

_MOST_BLOCKS = 8


def _build(seqlen: int, documents: Documents, parameters: Parameters) -> list[Slice]:
    block = parameters["block"]
    return [
        Slice(top, min(top + block, end), start, min(top + block, end), "full")
        for start, end in spans(documents)
        for top in range(start, end, block)
    ]


def _keeps(i: np.ndarray, j: np.ndarray, tokens: Tokens, parameters: Parameters) -> np.ndarray:
    same = tokens.document[i] == tokens.document[j]
    block_i, block_j = ((x - tokens.start[x]) // parameters["block"] for x in (i, j))
    return same & (block_j <= block_i)


def _draw(
    rng: random.Random, seqlen: int, documents: Documents, parameters: Parameters
) -> tuple[Documents, dict[str, int]]:
    if documents:
        return documents, dict(parameters)
    block, blocks = parameters["block"], -(-seqlen // parameters["block"])
    lengths, drawn = [], 0
    while drawn < blocks:
        run = min(rng.randint(1, _MOST_BLOCKS), blocks - drawn)
        lengths.append(min(run * block, seqlen - drawn * block))
        drawn += run
    return tuple(lengths), dict(parameters)


BLOCK_CAUSAL_DOCUMENT = Pattern(
    name="block_causal_document",
    summary="Documents are runs of blocks; a block sees itself and the blocks before it in its document.",
    rule="same document and block(j) <= block(i), block(x) = (x - document start) // block",
    parameters=("block",),
    build=_build,
    keeps=_keeps,
    draw=_draw,
    draws_documents=True,
)
