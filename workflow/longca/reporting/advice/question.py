"""What is asked for advice, and which measured cells are nearest to it."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from longca.errors import LongcaError
from longca.names import unknown_name
from longca.reporting.cells import Cell
from longca.units import Heads

PASSES = {"forward": ("forward",), "backward": ("backward",), "both": ("forward", "backward")}


@dataclass(frozen=True)
class Question:
    """A mask pattern, tokens, heads and a word of PASSES; gpus None: one GPU is asked about."""

    pattern: str
    seqlen: int
    heads: Heads
    pass_: str
    gpus: int | None = None
    gpus_per_node: int = 8

    @property
    def passes(self) -> tuple[str, ...]:
        """The passes whose times are summed."""
        return PASSES[self.pass_]


def cells_for(question: Question, cells: Iterable[Cell], source: str) -> list[Cell]:
    """The cells of a question's pattern and heads at the length measured nearest to its own, on any device.

    Raises LongcaError saying what was measured instead, where the pattern or the heads were not.
    """
    listed = list(cells)
    check_measured(question, listed, source)
    own = [cell for cell in listed if _is_of(question, cell)]
    # Where none is ok, why is told at the length that is nearest.
    timed = [cell for cell in own if cell.ok] or own
    length = nearest(question.seqlen, [cell.place.seqlen for cell in timed])
    chosen = [cell for cell in own if cell.place.seqlen == length]
    # Documents as the study's first dataset has them: a kernel's time is of one mask.
    return [cell for cell in chosen if cell.place.dataset == chosen[0].place.dataset]


def check_measured(question: Question, cells: Sequence[Cell], source: str) -> None:
    """Raise LongcaError where no cell is of a question's pattern, or none of its heads, saying which there are."""
    patterns = dict.fromkeys(cell.place.pattern for cell in cells)
    if question.pattern not in patterns:
        raise LongcaError(f"--pattern: {unknown_name(question.pattern, patterns, f'pattern of {source}')}")
    heads = dict.fromkeys(cell.place.heads for cell in cells if cell.place.pattern == question.pattern)
    if str(question.heads) not in heads:
        raise LongcaError(
            f"--heads: {question.heads} was not measured in {source}; allowed: {', '.join(heads)}"
        )


def was_measured(question: Question, cells: Iterable[Cell]) -> bool:
    """Whether any cell, ok or not, is of a question's pattern and heads."""
    return any(_is_of(question, cell) for cell in cells)


def _is_of(question: Question, cell: Cell) -> bool:
    return cell.place.pattern == question.pattern and cell.place.heads == str(question.heads)


def nearest(seqlen: int, lengths: Sequence[int]) -> int | None:
    """The length whose ratio to `seqlen` is nearest to 1, of two the longer; None of none."""
    return min(lengths, key=lambda tokens: (abs(math.log2(tokens / seqlen)), -tokens), default=None)
