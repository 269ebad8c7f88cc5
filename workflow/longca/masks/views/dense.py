"""The dense view: every cell. For small masks, oracles and pictures: it grows with queries x keys."""

from collections.abc import Sequence

import numpy as np

from longca.masks.slices import Slice, row_bounds


def dense(slices: Sequence[Slice], queries: int, keys: int) -> np.ndarray:
    """The kept cells, bool [queries, keys]."""
    kept = np.zeros((queries, keys), bool)
    for piece in slices:
        i, j = np.arange(piece.q0, piece.q1)[:, None], np.arange(piece.k0, piece.k1)
        left, right = row_bounds(piece)
        cells = np.ones((len(i), len(j)), bool)
        if left is not None:
            cells &= j >= i + left
        if right is not None:
            cells &= j <= i + right
        kept[piece.q0 : piece.q1, piece.k0 : piece.k1] |= cells
    return kept
