"""Seeded samples: the documents that fill a packed sequence of S tokens, drawn from a histogram of lengths.

Source: the sampling of "Long-Context Attention Benchmark" (arXiv 2510.17896), its random stream included.
"""

import random
from itertools import accumulate

from longca.data.histogram import Histogram
from longca.errors import LongcaError

AUTO = "auto"
LONG_SUFFIX = "_long"
# The paper's choice by length: the first dataset whose bound (tokens, inclusive) the sequence does not pass.
AUTO_BOUNDS = ((12288, "pile"), (65536, "prolong64k"))
AUTO_BEYOND = "prolong512k"
# A long sample fills this share from the histogram and the rest with documents of 8k to 30k tokens.
SHORT_SHARE = 0.4
LONG_DOCUMENTS = Histogram(bins=((8192, 30720),), weights=(1.0,), documents=(None,))


def draw_documents(rng: random.Random, histogram: Histogram, seqlen: int) -> list[int]:
    """Document lengths in tokens, each at least 1, that add up to `seqlen`; the last one is cut to fit.

    A bin's upper bound can be drawn, as in the published stream. Sample n takes random.Random(seed + n).
    """
    # `choices` would add the weights up again at every draw; a real corpus has a bin for each distinct
    # length.
    cumulative = list(accumulate(histogram.weights))
    documents: list[int] = []
    remaining = seqlen
    while remaining > 0:
        ((lower, upper),) = rng.choices(histogram.bins, cum_weights=cumulative, k=1)
        length = max(1, min(rng.randint(lower, upper), remaining))
        documents.append(length)
        remaining -= length
    return documents


def draw_long_documents(rng: random.Random, histogram: Histogram, seqlen: int) -> list[int]:
    """Document lengths in tokens of a `_long` sample (context parallel), shuffled.

    40 % of the tokens are drawn from `histogram`, the rest from documents of 8k to 30k tokens. Both parts end
    in a cut document; each length is at least 1 and together they make `seqlen`.
    """
    short = draw_documents(rng, histogram, int(SHORT_SHARE * seqlen))
    documents = short + draw_documents(rng, LONG_DOCUMENTS, seqlen - sum(short))
    rng.shuffle(documents)
    return documents


def resolve_dataset(dataset: str, seqlen: int, context_parallel: bool = False) -> str:
    """The dataset whose documents are drawn: `auto` is the paper's choice for `seqlen` tokens, others stay.

    Raises LongcaError where seqlen is below 1.
    """
    if seqlen < 1:
        raise LongcaError(f"seqlen {seqlen}: a sequence has at least 1 token")
    if dataset != AUTO:
        return dataset
    if context_parallel:
        return AUTO_BEYOND + LONG_SUFFIX
    return next((name for bound, name in AUTO_BOUNDS if seqlen <= bound), AUTO_BEYOND)


def base_dataset(dataset: str) -> str:
    """The dataset whose histogram a resolved dataset is drawn from: prolong512k_long reads prolong512k."""
    return dataset.removesuffix(LONG_SUFFIX)


def sample_documents(
    rng: random.Random, dataset_resolved: str, histogram: Histogram, seqlen: int
) -> list[int]:
    """Draw one sample the way its dataset's name asks for: `_long` or plain."""
    draw = draw_long_documents if dataset_resolved.endswith(LONG_SUFFIX) else draw_documents
    return draw(rng, histogram, seqlen)
