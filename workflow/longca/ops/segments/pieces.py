"""The pieces of masks as callers give them, and what of them is refused."""

from collections.abc import Sequence
from numbers import Integral

import numpy as np
import torch

from longca.masks.slices import TYPES

Piece = tuple[int, int, int, int, str]
# Pieces (q0, q1, k0, k1, type), or where all are full, and perhaps millions, an int64 array or tensor [n, 4] without
# the type.
Table = np.ndarray | torch.Tensor
SliceList = Sequence[Piece] | Table


def read_masks(slices: SliceList | Sequence[SliceList], queries: int, keys: int) -> list[SliceList]:
    """One mask or several, as a list: a mask's first piece starts with a number.

    Raises ValueError naming the first piece that is none, or not inside queries x keys. Whether two of them keep one
    cell is not looked at.
    """
    several = False
    if not isinstance(slices, Table) and len(slices):
        first = slices[0]
        several = isinstance(first, Table) or not len(first) or not isinstance(first[0], Integral)
    masks: list[SliceList] = list(slices) if several else [slices]  # type: ignore[arg-type, list-item]
    for mask in masks:
        _refuse_outside(mask if isinstance(mask, Table) else _ranges(mask), queries, keys)
    return masks


def all_full(masks: Sequence[SliceList]) -> bool:
    """Whether every piece keeps all its cells."""
    return all(isinstance(mask, Table) or all(piece[4] == "full" for piece in mask) for mask in masks)


def _ranges(pieces: Sequence[Piece]) -> np.ndarray:
    # All at once: one by one, many pieces take longer to look at than to lower.
    if {len(piece) for piece in pieces} <= {5} and {piece[4] for piece in pieces} <= set(TYPES):
        table = np.array([piece[:4] for piece in pieces]).reshape(-1, 4)
        if not len(table) or table.dtype.kind in "bi":
            return table.astype(np.int64)
    # The first that is none, or, where numbers are too large for an array of any, the first.
    wrong = next((piece for piece in pieces if not _is_piece(piece)), pieces[0])
    right = f"(q0, q1, k0, k1, type), four whole numbers and one of {', '.join(TYPES)}"
    raise ValueError(f"{tuple(wrong)} is no piece of a mask; right: {right}")


def _is_piece(piece: Piece) -> bool:
    return len(piece) == 5 and all(isinstance(n, Integral) for n in piece[:4]) and piece[4] in TYPES


def _refuse_outside(mask: Table, queries: int, keys: int) -> None:
    if not len(mask):
        return
    if mask.dtype not in (np.int64, torch.int64) or mask.ndim != 2 or mask.shape[1] != 4:
        raise ValueError(f"a table of pieces is {mask.dtype} {list(mask.shape)}; right: int64 [n, 4]")
    q0, q1, k0, k1 = mask.T
    wrong = (q0 < 0) | (q1 < q0) | (q1 > queries) | (k0 < 0) | (k1 < k0) | (k1 > keys)
    if wrong.any():
        piece = tuple(mask[wrong][0].tolist())
        raise ValueError(f"the piece {piece} must be ranges inside {queries} queries x {keys} keys")
