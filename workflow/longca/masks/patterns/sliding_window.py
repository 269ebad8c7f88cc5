"""Windows around or behind the query; the window is an inclusive distance."""

import numpy as np

from longca.masks.patterns.pattern import Pattern
from longca.masks.slices import band

FULL_SLIDING_WINDOW = Pattern(
    name="full_sliding_window",
    summary="Every query sees its neighbours on both sides.",
    rule="abs(i - j) <= window",
    parameters=("window",),
    build=lambda seqlen, documents, parameters: band(
        0, seqlen, 0, seqlen, -parameters["window"], parameters["window"]
    ),
    keeps=lambda i, j, tokens, parameters: np.abs(i - j) <= parameters["window"],
)

CAUSAL_SLIDING_WINDOW = Pattern(
    name="causal_sliding_window",
    summary="Every query sees itself and the keys just before it.",
    rule="0 <= i - j <= window",
    parameters=("window",),
    build=lambda seqlen, documents, parameters: band(0, seqlen, 0, seqlen, -parameters["window"], 0),
    keeps=lambda i, j, tokens, parameters: (i - j >= 0) & (i - j <= parameters["window"]),
)
