"""Progress of a count: a bar on a terminal, a line now and then in a log."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.filesize import decimal
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

SECONDS_BETWEEN_LINES = 10.0

# What is called after each batch: bytes of the corpus's files read for it, documents counted in it.
Advance = Callable[[int, int], None]


@contextmanager
def progress(name: str, total_bytes: int | None) -> Iterator[Advance]:
    """Show on stderr how far the count of corpus `name` is; total_bytes is None for a remote one."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _lines(name, total_bytes)
        return
    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%  {task.fields[documents]:,} documents  {task.fields[speed]}/s"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    )
    with bar:
        task = bar.add_task(name, total=total_bytes, documents=0, speed=decimal(0))

        def advance(stored_bytes: int, documents: int) -> None:
            state = bar.tasks[0]
            bar.update(
                task,
                advance=stored_bytes,
                documents=state.fields["documents"] + documents,
                speed=decimal(int(state.speed or 0)),
            )

        yield advance


def _lines(name: str, total_bytes: int | None) -> Advance:
    done = counted = 0
    last = time.monotonic()

    def advance(stored_bytes: int, documents: int) -> None:
        nonlocal done, counted, last
        done += stored_bytes
        counted += documents
        if time.monotonic() - last >= SECONDS_BETWEEN_LINES:
            last = time.monotonic()
            share = f"{done / total_bytes:.0%}, " if total_bytes else ""
            print(f"{name}: {share}{counted:,} documents", file=sys.stderr, flush=True)

    return advance
