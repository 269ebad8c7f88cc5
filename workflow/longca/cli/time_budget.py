"""`--time-budget`: how long a command may take, and how it ends where that is over."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from longca.errors import LongcaError

if TYPE_CHECKING:
    from longca.measure.budget import Budget

# EX_TEMPFAIL: to be run again.
_OUT_OF_BUDGET = 75
TimeBudget = Annotated[
    str | None,
    typer.Option(help="Stop cleanly within this time, as 8m, and within a SLURM job's; exit code 75."),
]


@contextmanager
def spending(text: str | None) -> "Iterator[Budget]":
    """The budget that begins now, of the option's text (None: no limit) and of the SLURM job around this process.

    Where it ends within, a line on stderr and exit code 75. Raises LongcaError for a text that is no duration.
    """
    from longca.measure.budget import Budget, OutOfBudgetError
    from longca.measure.slurm import within_job
    from longca.units import parse_duration

    try:
        asked_s = None if text is None else parse_duration(text)
    except ValueError as error:
        raise LongcaError(f"--time-budget: {error}") from None
    try:
        yield Budget.of(within_job(asked_s))
    except OutOfBudgetError:
        typer.echo("longca: the time budget ended; what was measured is kept, run again to go on", err=True)
        raise typer.Exit(_OUT_OF_BUDGET) from None
