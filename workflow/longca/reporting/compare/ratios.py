"""Ratios of latencies with their confidence intervals, bootstrapped from raw samples: the same figures every time."""

import hashlib
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

RESAMPLES = 1000
# The interval's ends, in percent of the resampled ratios.
CONFIDENCE = (2.5, 97.5)
_SEED = 42


class Interval(NamedTuple):
    """A ratio of latencies of B over A, above 1 where B is slower, and the ends of its 95 % confidence interval."""

    ratio: float
    low: float
    high: float


@dataclass(frozen=True)
class Medians:
    """A cell's median latency on both sides, in ms, and float64 [RESAMPLES] medians of samples drawn again."""

    a: float
    b: float
    resampled_a: np.ndarray
    resampled_b: np.ndarray


def medians(samples_a: list[float], samples_b: list[float], identity: str) -> Medians:
    """The medians of two lists of samples (ms). What is drawn depends on the cell's own `identity` alone."""
    digest = hashlib.sha256(identity.encode()).digest()
    generator = np.random.default_rng([_SEED, int.from_bytes(digest[:8], "big")])
    return Medians(
        float(np.median(samples_a)),
        float(np.median(samples_b)),
        _resampled(generator, samples_a),
        _resampled(generator, samples_b),
    )


def ratio_of_sums(cells: list[Medians]) -> Interval:
    """The time of all cells on B over that on A: a sum of medians each, never a mean of ratios."""
    a, b = sum(cell.a for cell in cells), sum(cell.b for cell in cells)
    resampled = np.sum([c.resampled_b for c in cells], axis=0) / np.sum(
        [c.resampled_a for c in cells], axis=0
    )
    low, high = np.percentile(resampled, CONFIDENCE)
    return Interval(b / a, float(low), float(high))


def _resampled(generator: np.random.Generator, samples: list[float]) -> np.ndarray:
    drawn = generator.integers(0, len(samples), (RESAMPLES, len(samples)))
    return np.median(np.asarray(samples)[drawn], axis=1)
