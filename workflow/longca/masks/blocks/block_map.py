"""What a block map is: blocks of rows and columns for each KV head, and which of them are kept."""

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from longca.masks.slices import Slice


@dataclass(frozen=True, eq=False)
class BlockMap:
    """One sample of a dynamic pattern over `seqlen` queries and keys.

    block: tokens of a block, on average for variable_block. density_nominal: the share asked for. row_sizes
    int64 [kv_heads, block rows], column_sizes int64 [kv_heads, block columns]: tokens, adding up to seqlen.
    kept bool [kv_heads, block rows, block columns].
    """

    pattern: str
    seqlen: int
    block: int
    density_nominal: float
    kv_heads: int
    seed: int
    sample: int
    row_sizes: np.ndarray
    column_sizes: np.ndarray
    kept: np.ndarray

    @cached_property
    def area(self) -> float:
        """Cells kept, the mean over KV heads."""
        cells = sum(
            int(rows @ (kept @ columns))
            for rows, kept, columns in zip(self.row_sizes, self.kept, self.column_sizes, strict=True)
        )
        return cells / self.kv_heads

    @property
    def density(self) -> float:
        """Share of the seqlen x seqlen cells really kept, the mean over KV heads."""
        return self.area / self.seqlen**2

    @cached_property
    def digest(self) -> str:
        """sha256 (hex) of sizes and kept blocks."""
        digest = hashlib.sha256(f"{self.seqlen} {self.kept.shape}\n".encode())
        digest.update(self.row_sizes.astype("<i8").tobytes())
        digest.update(self.column_sizes.astype("<i8").tobytes())
        digest.update(np.packbits(self.kept).tobytes())
        return digest.hexdigest()

    def runs(self, head: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """int64 arrays (block row, first key, end key) of a head's runs of kept blocks, row by row."""
        kept = np.pad(self.kept[head], ((0, 0), (1, 1))).astype(np.int8)
        edge = np.diff(kept, axis=1)
        row, first = np.nonzero(edge == 1)
        _, end = np.nonzero(edge == -1)
        start = np.append(0, np.cumsum(self.column_sizes[head]))
        return row, start[first], start[end]

    def rectangles(self, head: int) -> np.ndarray:
        """int64 [runs, 4] of q0, q1, k0, k1: a head's map as rectangles, one a run of kept blocks."""
        stop = np.cumsum(self.row_sizes[head])
        row, first, end = self.runs(head)
        return np.stack([(stop - self.row_sizes[head])[row], stop[row], first, end], axis=1)

    def slices(self, head: int) -> list[Slice]:
        """A head's map as full slices, one a run of kept blocks."""
        return [Slice(q0, q1, k0, k1, "full") for q0, q1, k0, k1 in self.rectangles(head).tolist()]
