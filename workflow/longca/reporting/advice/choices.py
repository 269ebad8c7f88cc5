"""Choices: what could be taken, ranked by time; what has no number comes last, with the reason."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from longca.reporting.cells import LEVEL, Cell
from longca.reporting.scale.level import level_words
from longca.reporting.words import plain, words

MEASURED, MODELLED = "measured", "modelled"


@dataclass(frozen=True)
class Choice:
    """A kernel or mechanism for one question: milliseconds of all passes asked for, None where it has no number.

    low_ms, high_ms: p20 and p80 (both the median where it is modelled). ratio: its time over the fastest one's.
    """

    name: str
    origin: str
    why: str
    ms: float | None = None
    low_ms: float = 0.0
    high_ms: float = 0.0
    tflops: float | None = None
    ratio: float | None = None


def ranked(choices: Sequence[Choice], error: float | None = None) -> list[Choice]:
    """Choices by rising time, each with its ratio to the fastest and why it stands where it does.

    error: the model's own, where they are modelled; those nearer to the fastest are level with it.
    """
    timed = sorted((one for one in choices if one.ms is not None), key=lambda one: one.ms or 0.0)
    without = [one for one in choices if one.ms is None]
    return [*(_placed(one, timed[0], error) for one in timed), *without]


def measured_choice(name: str, by_pass: Mapping[str, Cell | None]) -> Choice:
    """A kernel or mechanism as its cells have it, one for each pass asked for; None: not in the study's grid."""
    cells = list(by_pass.values())
    lacking = [_lack(pass_, cell) for pass_, cell in by_pass.items() if cell is None or not cell.ok]
    if lacking:
        return Choice(name, MEASURED, "; ".join(lacking))
    low, middle, high = (
        sum(cell.latency(quantile) or 0.0 for cell in cells if cell) for quantile in ("p20", "p50", "p80")
    )
    work = sum((cell.throughput() or 0.0) * (cell.latency("p50") or 0.0) for cell in cells if cell)
    flags = dict.fromkeys(flag for cell in cells if cell for flag in cell.flags)
    why = f"flagged {', '.join(map(words, flags))}" if flags else ""
    return Choice(name, MEASURED, why, middle, low, high, work / middle)


def _placed(one: Choice, first: Choice, error: float | None) -> Choice:
    assert one.ms is not None and first.ms is not None
    ratio = one.ms / first.ms
    if one is first:
        place = "fastest"
    elif one.origin == MODELLED and ratio <= 1 + (error or 0.0):
        place = f"level with the fastest: {level_words(error)}"
    elif one.low_ms <= first.high_ms or ratio <= 1 + LEVEL:
        place = "level with the fastest, within the spread"
    else:
        place = f"takes {ratio:.2f} times as long as {first.name}"
    return replace(one, ratio=ratio, why="; ".join(filter(None, (place, one.why))))


def _lack(pass_: str, cell: Cell | None) -> str:
    if cell is None:
        return f"{pass_}: not in the study's grid"
    reason = plain("; ".join(cell.reasons))
    return f"{pass_}: {cell.words}" + (f": {reason}" if reason else "")
