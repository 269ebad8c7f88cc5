"""A window, and tokens that see and are seen by all."""

import numpy as np

from longca.masks.patterns.pattern import Documents, Parameters, Pattern, Tokens
from longca.masks.slices import Slice, band


def _build(seqlen: int, documents: Documents, parameters: Parameters) -> list[Slice]:
    window, tokens = parameters["window"], min(parameters["global_tokens"], seqlen)
    slices = []
    if tokens > 0:
        slices.append(Slice(0, tokens, 0, seqlen, "full"))
    if 0 < tokens < seqlen:
        slices.append(Slice(tokens, seqlen, 0, tokens, "full"))
    return slices + band(tokens, seqlen, tokens, seqlen, -window, window)


def _keeps(i: np.ndarray, j: np.ndarray, tokens: Tokens, parameters: Parameters) -> np.ndarray:
    count = parameters["global_tokens"]
    return (np.abs(i - j) <= parameters["window"]) | (i < count) | (j < count)


GLOBAL_SLIDING = Pattern(
    name="global_sliding",
    summary="A window on both sides, and the first tokens see and are seen by all.",
    rule="abs(i - j) <= window or i < global_tokens or j < global_tokens",
    parameters=("window", "global_tokens"),
    build=_build,
    keeps=_keeps,
)
