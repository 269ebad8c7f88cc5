"""Every view by name: for the command line, the tests and the docs."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from longca.errors import LongcaError
from longca.masks.slices import Slice
from longca.masks.views import dense, flashmask, flex, segments, varlen, window
from longca.names import unknown_name

SEGMENT_TILE = 128
LARGEST_DENSE = 4096


@dataclass(frozen=True)
class View:
    """One view of masks.

    lower(slices, queries, keys) makes it or raises ViewUnavailable; expand(view) gives back the kept cells,
    bool [queries, keys].
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


def view_json(name: str, slices: Sequence[Slice], seqlen: int) -> str:
    """A view of a mask of `seqlen` queries and keys, as JSON with its arrays as lists.

    Raises:
        LongcaError: for an unknown view, one that cannot express the mask, or a dense one of a long mask.
    """
    if name not in VIEWS:
        raise LongcaError(unknown_name(name, VIEWS, "view"))
    if name == "dense" and seqlen > LARGEST_DENSE:
        raise LongcaError(f"view dense: lists every cell; seqlen {seqlen} must be at most {LARGEST_DENSE}")
    view = VIEWS[name].lower(slices, seqlen, seqlen)
    content = {"kept": view} if isinstance(view, np.ndarray) else asdict(view)
    return json.dumps({"view": name, **content}, default=np.ndarray.tolist)
