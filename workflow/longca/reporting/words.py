"""Words and numbers as tables show them: a status is a word, a number has three significant digits."""

import math
import re
from collections import Counter
from collections.abc import Mapping

NOT_MEASURED = "not measured"
NOT_IN_GRID = "not in grid"

# From the one that most needs a reader's eye to the one that needs it least.
SEVERITY = (
    "wrong",
    "crashed",
    "timeout",
    "fallback",
    "out_of_memory",
    "missing",
    "unsupported",
    NOT_MEASURED,
    "ok",
)


def status_words(counts: Mapping[str, int]) -> str:
    """What the cases of one cell came to: a status as words where they agree, else each with its count."""
    total = sum(counts.values())
    present = [status for status in SEVERITY if counts.get(status)]
    if len(present) == 1:
        return words(present[0])
    return ", ".join(f"{words(status)} {counts[status]} of {total}" for status in present)


def worst(counts: Mapping[str, int]) -> str:
    """The status of a cell that most needs a reader's eye."""
    return next(status for status in SEVERITY if counts.get(status))


def count(statuses: list[str]) -> dict[str, int]:
    """How often each status occurs, the one that most needs a reader's eye first."""
    counts = Counter(statuses)
    return {status: counts[status] for status in SEVERITY if counts[status]}


def words(name: str) -> str:
    """A snake_case name as words."""
    return name.replace("_", " ")


def digits(value: float) -> str:
    """A number with three significant digits, without an exponent unless tiny: 0.0123, 12.3, 1234."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    rounded = float(f"{value:.2e}")
    places = 2 - math.floor(math.log10(abs(rounded)))
    if places > 5:
        return f"{value:.2e}"
    return f"{rounded:.{places}f}" if places > 0 else f"{value:.0f}"


def plain(text: str, limit: int = 240) -> str:
    """Text of a library or config as one line to read: no control characters, cut at `limit` characters."""
    line = " ".join(re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).split())
    line = "".join(character for character in line if character.isprintable())
    return line if len(line) <= limit else f"{line[: limit - 1]}…"
