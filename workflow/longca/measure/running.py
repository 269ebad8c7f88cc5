"""Measuring many series: grid by grid, one session a kernel, on a device of its own, within one budget."""

import contextlib
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

import psutil
from rich.console import Console

from longca.cases import Series, grid_series, study_series
from longca.measure.budget import Budget
from longca.measure.controls import Controls
from longca.measure.device_lock import timing_lock
from longca.measure.device_probe import has_gpu
from longca.measure.processes import run_folder
from longca.measure.progress import series_progress
from longca.measure.series import SeriesRunner
from longca.measure.session import KernelSession
from longca.study.model import Study

# So many next kernels' workers import their libraries while one measures on a GPU. Their processors are not what is
# timed there; on a CPU nothing runs beside a measurement.
_AHEAD_ON_GPU = 3


@dataclass(frozen=True)
class Turn:
    """A session's work: the parts of series, all of one kernel, that one grid of the config asks for first."""

    family: str
    kernel: str
    parts: tuple[Series, ...]


def measure_series(
    study: Study,
    results: Path,
    series: Sequence[Series],
    budget: Budget,
    retry: frozenset[str],
    console: Console,
) -> None:
    """Measure the cases of `series` into `results`, resuming; a series may have some of its cases in the study.

    Raises LongcaError, and OutOfBudgetError where the budget ends.
    """
    started = _process_start()
    whole = {one.name: one for one in study_series(study)}
    # From the first to the last kernel one GPU, this run's own: workers of the next kernels start on it, too.
    lock = timing_lock(study.measure.device, budget)
    todo = turns(study, series)
    with lock, tempfile.TemporaryDirectory(prefix="longca-") as folder:
        # One kernel asks for no truth twice, but other jobs of a run ask for it, too.
        several = len({(turn.family, turn.kernel) for turn in todo}) > 1
        oracles = run_folder() or (Path(folder) if several else None)
        controls = Controls(study, results, budget, oracles)
        for turn, session in _sessions(study, todo, budget, oracles):
            with session:
                environment = session.opened.environment
                asked = time.monotonic()
                session.control = controls.current(environment)
                control_s = time.monotonic() - asked
                for part in turn.parts:
                    one = whole[part.name]
                    runner = SeriesRunner(study, results, one, retry, started)
                    runner.job.control_s, control_s = control_s, 0.0
                    with series_progress(study, one, part.cases, console) as progress:
                        runner.run(session, budget, progress, part.cases)
                    started = time.monotonic()


def turns(study: Study, series: Sequence[Series]) -> list[Turn]:
    """The turns of the cases of `series`: in the order of the grids, within one in the order of its kernels.

    Where a kernel's turns follow each other, they are one.
    """
    wanted = {case for one in series for case in one.cases}
    parts = [
        replace(part, cases=tuple(case for case in part.cases if case in wanted))
        for grid in grid_series(study)
        for part in grid
    ]
    by_kernel = groupby((part for part in parts if part.cases), key=lambda part: (part.family, part.kernel))
    return [Turn(*kernel, tuple(of_kernel)) for kernel, of_kernel in by_kernel]


def _sessions(
    study: Study, todo: Sequence[Turn], budget: Budget, oracles: Path | None
) -> Iterator[tuple[Turn, KernelSession]]:
    """Each turn with its session; on a GPU, those of the next turns have started."""
    device = study.measure.device
    ahead = _AHEAD_ON_GPU if device == "cuda" or (device == "auto" and has_gpu()) else 0
    started: deque[tuple[Turn, KernelSession]] = deque()
    with contextlib.ExitStack() as open_sessions:
        for turn in todo:
            session = KernelSession(turn.family, turn.kernel, study.measure, budget, oracles)
            started.append((turn, open_sessions.enter_context(session)))
            if len(started) > ahead:
                yield started.popleft()
        while started:
            yield started.popleft()


def _process_start() -> float:
    """When this process started, in seconds of the monotonic clock: imports are overhead too."""
    return time.monotonic() - (time.time() - psutil.Process().create_time())
