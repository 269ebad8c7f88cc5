"""How a block map is drawn."""

import numpy as np

from longca.errors import LongcaError
from longca.masks.blocks.block_map import BlockMap
from longca.masks.patterns import DYNAMIC_PATTERNS
from longca.names import unknown_name

SMALLEST_VARIABLE_BLOCK = 128


def draw_block_map(
    pattern: str, seqlen: int, block: int, density: float, kv_heads: int, seed: int = 42, sample: int = 0
) -> BlockMap:
    """Draw sample number `sample` from numpy's Generator(PCG64(seed + sample)); the same on every machine.

    Sizes come before scores, KV heads in order, a head's row sizes before its column sizes; scores are
    float64, and ties go to the lower index.

    Raises:
        LongcaError: for an unknown pattern or a value out of range.
    """
    if pattern not in DYNAMIC_PATTERNS:
        raise LongcaError(unknown_name(pattern, DYNAMIC_PATTERNS, "dynamic pattern"))
    smallest = SMALLEST_VARIABLE_BLOCK if pattern == "variable_block" else 1
    for name, value, least in (
        ("seqlen", seqlen, 1),
        ("block", block, smallest),
        ("kv_heads", kv_heads, 1),
        ("seed", seed, 0),
        ("sample", sample, 0),
    ):
        if value < least:
            raise LongcaError(f"{name} {value}: must be at least {least} for {pattern}")
    if not 0 < density <= 1:
        raise LongcaError(f"density {density}: must be above 0 and at most 1")
    rng = np.random.Generator(np.random.PCG64(seed + sample))
    if pattern == "uniform_block":
        rows = columns = np.tile(_uniform_sizes(seqlen, block), (kv_heads, 1))
    else:
        sizes = np.stack([_variable_sizes(rng, seqlen, block) for _ in range(2 * kv_heads)])
        rows, columns = sizes[::2], sizes[1::2]
    count = max(1, int(density * columns.shape[1]))
    kept = np.stack([_highest(rng.random((rows.shape[1], columns.shape[1])), count) for _ in range(kv_heads)])
    return BlockMap(pattern, seqlen, block, density, kv_heads, seed, sample, rows, columns, kept)


def _uniform_sizes(seqlen: int, block: int) -> np.ndarray:
    sizes = np.full(-(-seqlen // block), block, np.int64)
    sizes[-1] = seqlen - block * (len(sizes) - 1)
    return sizes


def _variable_sizes(rng: np.random.Generator, seqlen: int, average: int) -> np.ndarray:
    """Sizes of at least 128 tokens; a sequence shorter than `average` is one block."""
    count = max(1, seqlen // average)
    spare = seqlen - count * SMALLEST_VARIABLE_BLOCK
    if count == 1:
        return np.array([seqlen], np.int64)
    cuts = np.sort(rng.integers(0, spare, count - 1, endpoint=True))
    return np.diff(cuts, prepend=0, append=spare) + SMALLEST_VARIABLE_BLOCK


def _highest(scores: np.ndarray, count: int) -> np.ndarray:
    """The `count` highest scores of each row, bool; of equal ones the first. Linear, unlike a sort."""
    columns = scores.shape[1]
    least = np.partition(scores, columns - count, axis=1)[:, columns - count, None]
    kept = scores >= least
    for row in np.flatnonzero(kept.sum(1) > count):
        kept[row] = scores[row] > least[row]
        ties = np.flatnonzero(scores[row] == least[row])
        kept[row, ties[: count - kept[row].sum()]] = True
    return kept
