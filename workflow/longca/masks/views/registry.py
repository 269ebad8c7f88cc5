"""Every view by name: for the command line, the tests and the docs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from longca.masks.slices import Slice
from longca.masks.views import dense, flashmask, flex, segments, varlen, window

SEGMENT_TILE = 128


@dataclass(frozen=True)
class View:
    """One view of masks.

    lower(slices, queries, keys) makes it or raises ViewUnavailable; expand(view) gives back bool [queries,
    keys].
    """

    summary: str
    lower: Callable[[Sequence[Slice], int, int], Any]
    expand: Callable[[Any], np.ndarray]


def _segments(slices: Sequence[Slice], queries: int, keys: int) -> segments.Segments:
    return segments.lower(slices, queries, keys, SEGMENT_TILE, SEGMENT_TILE)


VIEWS: dict[str, View] = {
    "dense": View("every cell", dense.dense, lambda view: view),
    "varlen": View("packed sequences, all full or all causal", varlen.lower, varlen.expand),
    "window": View("one sliding window over the sequence", window.lower, window.expand),
    "flex": View("partial and full blocks, and the intervals each query keeps", flex.lower, flex.expand),
    "flashmask": View("for each key the queries that do not see it", flashmask.lower, flashmask.expand),
    "segments": View("for each tile of queries a few runs of keys", _segments, segments.expand),
}
