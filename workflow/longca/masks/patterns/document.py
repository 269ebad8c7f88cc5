"""Packed documents that do not see each other."""

from longca.masks.patterns.pattern import Pattern, spans
from longca.masks.slices import Slice

FULL_DOCUMENT = Pattern(
    name="full_document",
    summary="Packed documents, each seen in full by its own tokens only.",
    rule="same document",
    takes_documents=True,
    build=lambda seqlen, documents, parameters: [Slice(a, b, a, b, "full") for a, b in spans(documents)],
    keeps=lambda i, j, tokens, parameters: tokens.document[i] == tokens.document[j],
)

CAUSAL_DOCUMENT = Pattern(
    name="causal_document",
    summary="Packed documents, causal and seen by their own tokens only: pre-training on packed text.",
    rule="same document and j <= i",
    takes_documents=True,
    build=lambda seqlen, documents, parameters: [Slice(a, b, a, b, "causal") for a, b in spans(documents)],
    keeps=lambda i, j, tokens, parameters: (tokens.document[i] == tokens.document[j]) & (j <= i),
)
