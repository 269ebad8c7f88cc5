"""Measuring many series: one session a kernel, one timing at a time on a device, within one budget."""

import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path

import psutil
from filelock import FileLock, Timeout
from rich.console import Console

from longca.cases import Series
from longca.errors import LongcaError
from longca.measure.budget import NO_LIMIT, Budget
from longca.measure.record import STATUSES, Record
from longca.measure.series import Progress, SeriesRunner
from longca.measure.session import KernelSession
from longca.names import unknown_name
from longca.study.model import Study


def measure_series(
    study: Study,
    results: Path,
    series: Sequence[Series],
    budget_s: float | None,
    retry: frozenset[str],
    console: Console,
) -> None:
    """Measure every series into `results`, resuming. Raises LongcaError, and OutOfBudgetError where the budget ends."""
    for status in retry:
        if status not in STATUSES:
            raise LongcaError(f"--retry: {unknown_name(status, STATUSES, 'status')}")
    budget = Budget.of(budget_s)
    started = _process_start()
    in_order = sorted(series, key=lambda one: (one.family, one.kernel))
    for (family, kernel), of_kernel in groupby(in_order, key=lambda one: (one.family, one.kernel)):
        with timing_lock(budget), KernelSession(family, kernel, study.measure, budget) as session:
            for one in of_kernel:
                SeriesRunner(study, results, one, retry, started).run(session, budget, _printer(one, console))
                started = time.monotonic()


@contextmanager
def timing_lock(budget: Budget = NO_LIMIT) -> Iterator[None]:
    """Held while a process times on this machine's CPU or visible GPUs: no two measurements disturb each other.

    Raises OutOfBudgetError where the budget ends before another process lets it go.
    """
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "all").replace(",", "-").replace("/", "-")
    lock = FileLock(Path(tempfile.gettempdir()) / f"longca-timing-{visible}.lock", mode=0o666)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        where = f"waiting for another measurement on this machine ({lock.lock_file})"
        print(where, file=sys.stderr, flush=True)
        _wait_for(lock, budget)
    try:
        yield
    finally:
        lock.release()


def _wait_for(lock: FileLock, budget: Budget) -> None:
    while True:
        try:
            lock.acquire(timeout=budget.left(60))
        except Timeout:
            continue
        return


def _process_start() -> float:
    """When this process started, in seconds of the monotonic clock: imports are overhead too."""
    return time.monotonic() - (time.time() - psutil.Process().create_time())


def _printer(series: Series, console: Console) -> Progress:
    def show(number: int, record: Record, kept: bool) -> None:
        what = f"{record.tflops:.3g} TFLOP/s" if record.tflops is not None else record.reason or ""
        note = ", kept" if kept else ""
        console.print(
            f"{series.name} {number}/{len(series.cases)}: {record.seqlen} {record.pass_} {record.status}{note} {what}",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )

    return show
