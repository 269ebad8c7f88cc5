"""What is asked for advice, and which measured cells are nearest to it."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from longca.errors import LongcaError
from longca.names import unknown_name
from longca.reporting.cells import Cell
from longca.reporting.scale.lengths import LEAST_A_GPU, MOST, reason_against
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

    @property
    def tokens(self) -> int:
        """Tokens a GPU, of the one with the most."""
        return -(-self.seqlen // (self.gpus or 1))


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
    # Documents of one dataset, as models have them: a kernel's time is of one mask.
    dataset = min((cell.place.dataset for cell in chosen), default="")
    return [cell for cell in chosen if cell.place.dataset == dataset]


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


def check_length(question: Question) -> None:
    """Raise LongcaError for fewer tokens than the GPUs that are to divide them, or more than masks are drawn for."""
    if question.gpus is None:
        return
    if question.seqlen < question.gpus:
        allowed = f"allowed: {question.gpus} or more, {LEAST_A_GPU * question.gpus} for what is modelled"
        raise LongcaError(
            f"--seqlen: {question.seqlen} tokens do not divide over {question.gpus} GPUs; {allowed}"
        )
    if question.seqlen > MOST:
        raise LongcaError(
            f"--seqlen: {question.seqlen} tokens are more than masks are drawn for; allowed: {MOST // 2**20}M, or fewer"
        )


def check_modelled(question: Question) -> None:
    """Raise LongcaError for a length that is not modelled on the question's GPUs."""
    reason = reason_against(question.tokens, question.gpus or 1)
    if reason:
        raise LongcaError(f"--seqlen: {reason}")


def was_measured(question: Question, cells: Iterable[Cell]) -> bool:
    """Whether any cell, ok or not, is of a question's pattern and heads."""
    return any(_is_of(question, cell) for cell in cells)


def _is_of(question: Question, cell: Cell) -> bool:
    return cell.place.pattern == question.pattern and cell.place.heads == str(question.heads)


def nearest(seqlen: int, lengths: Sequence[int]) -> int | None:
    """The length whose ratio to `seqlen` is nearest to 1, of two the longer; None of none."""
    return min(lengths, key=lambda tokens: (abs(math.log2(tokens / seqlen)), -tokens), default=None)
