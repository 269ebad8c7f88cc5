"""Every key, or every key so far: the two masks all kernels know."""

from longca.masks.patterns.pattern import Pattern
from longca.masks.slices import Slice

FULL = Pattern(
    name="full",
    summary="Every query sees every key, as in an encoder.",
    rule="always",
    build=lambda seqlen, documents, parameters: [Slice(0, seqlen, 0, seqlen, "full")],
    keeps=lambda i, j, tokens, parameters: (i >= 0) & (j >= 0),
)

CAUSAL = Pattern(
    name="causal",
    summary="Every query sees the keys up to itself, as in a language model.",
    rule="j <= i",
    build=lambda seqlen, documents, parameters: [Slice(0, seqlen, 0, seqlen, "causal")],
    keeps=lambda i, j, tokens, parameters: j <= i,
)
