"""A restricted mask as one rectangle, full or causal: all that a kernel without masks computes in one call."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from longca.kernels.interface import UnsupportedError
from longca.masks.intervals import row_intervals
from longca.masks.slices import Slice


class Rectangle(NamedTuple):
    """Queries [q0, q1) x keys [k0, k1), all of it, or causal: aligned at the bottom right."""

    q0: int
    q1: int
    k0: int
    k1: int
    causal: bool


def find_rectangle(slices: Sequence[Slice], queries: int, keys: int) -> Rectangle:
    """The one rectangle whose cells a mask keeps.

    Under a zigzag sharding a ring's part of a causal mask is one: a rank's own keys are causal, of another's all
    or the first half are kept by all or the second half of its queries.

    Raises:
        UnsupportedError: for any other mask.
    """
    kept = row_intervals(slices, queries, keys)
    q0, q1 = int(kept.row[0]), int(kept.row[-1]) + 1
    if len(kept.row) == q1 - q0 and np.all(np.diff(kept.row) == 1) and np.all(kept.low == kept.low[0]):
        k0, k1 = int(kept.low[0]), int(kept.high[-1])
        if np.all(kept.high == k1):
            return Rectangle(q0, q1, k0, k1, causal=False)
        if np.all(kept.high == k1 - np.arange(q1 - q0)[::-1]):
            return Rectangle(q0, q1, k0, k1, causal=True)
    raise UnsupportedError("its part of the mask on this rank is no full or causal rectangle")
