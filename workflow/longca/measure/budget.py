"""A time budget, and what happens at its end."""

import time
from dataclasses import dataclass


class OutOfBudgetError(Exception):
    """The time budget ends before the next case would; what was measured is in the journal."""


@dataclass(frozen=True)
class Budget:
    """Time until `deadline`, seconds of the monotonic clock; None is no limit."""

    deadline: float | None = None

    @classmethod
    def of(cls, seconds: float | None) -> "Budget":
        """A budget that begins now."""
        return cls(None if seconds is None else time.monotonic() + seconds)

    def left(self, longest: float = float("inf")) -> float:
        """Seconds left, `longest` at most. Raises OutOfBudgetError where there are none."""
        left = float("inf") if self.deadline is None else self.deadline - time.monotonic()
        if left <= 0:
            raise OutOfBudgetError
        return min(left, longest)


NO_LIMIT = Budget()
