"""Progress of a series: one live line on a terminal, a line a case in a log."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from rich.console import Console
from rich.live import Live
from rich.text import Text

from longca.cases import Case, Series
from longca.measure.device_probe import has_gpu
from longca.measure.record import Record
from longca.measure.series import Progress
from longca.study.model import Study
from longca.study.plan import ASSUMED, predict_seconds

# What costs no time to speak of, and so tells nothing about what is to come.
_AT_ONCE = ("unsupported", "missing")


def _lines(series: Series, console: Console) -> Progress:
    """Print a line for each case: its number, what it is, what came of it."""

    def show(number: int, record: Record, kept: bool) -> None:
        note = ", kept" if kept else ""
        console.print(
            f"{series.name} {number}/{len(series.cases)}: {record.seqlen} {record.pass_} "
            f"{record.status}{note} {_result(record)}",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )

    return show


@contextmanager
def series_progress(
    study: Study, series: Series, cases: Sequence[Case], console: Console
) -> Iterator[Progress]:
    """Show on `console` how far the measuring of `cases`, some of the series', has come."""
    if not console.is_terminal:
        yield _lines(series, console)
        return
    line = _Line(series, cases, _prediction(study))
    # Drawn after each case and never in between: nothing runs beside a measurement.
    with Live(
        line.text(), console=console, auto_refresh=False, redirect_stdout=False, redirect_stderr=False
    ) as live:

        def show(number: int, record: Record, kept: bool) -> None:
            line.add(record, kept)
            live.update(line.text(), refresh=True)

        yield show


def _prediction(study: Study) -> Callable[[Case], float]:
    """Seconds a case is thought to take; only the proportion of two cases counts."""
    device = study.measure.device
    on_gpu = has_gpu() if device == "auto" else device == "cuda"
    assumed = ASSUMED["cuda" if on_gpu else "cpu"]
    return partial(predict_seconds, protocol=study.measure, assumed=assumed, latency_ms=None)


class _Line:
    """What the live line says: the case in work, what came of the one before, and about how long the rest takes."""

    def __init__(self, series: Series, cases: Sequence[Case], predict: Callable[[Case], float]) -> None:
        self._series, self._left, self._predict = series, list(cases), predict
        self._statuses: Counter[str] = Counter()
        self._last: Record | None = None
        self._taken_s = self._predicted_s = 0.0
        self._began = self._changed = time.monotonic()

    def add(self, record: Record, kept: bool) -> None:
        """Take in the record of a case."""
        now = time.monotonic()
        if not kept and record.status not in _AT_ONCE:
            self._taken_s += now - self._changed
            self._predicted_s += self._predict(record.case)
        self._changed = now
        self._left.remove(record.case)
        self._statuses[record.status] += 1
        self._last = record

    def text(self) -> Text:
        """The line as it is now."""
        if self._left:
            case, every = self._left[0], self._series.cases
            said = f"case {every.index(case) + 1} of {len(every)}: {case.seqlen} {case.pass_}"
            parts = [said, self._said_of_last(), self._time_left()]
        else:
            counts = ", ".join(f"{count} {status}" for status, count in self._statuses.most_common())
            parts = [f"done: {counts}", f"{_clock(self._changed - self._began)}"]
        return Text(
            f"{self._series.name} " + "; ".join(filter(None, parts)), no_wrap=True, overflow="ellipsis"
        )

    def _said_of_last(self) -> str:
        return f"before it {self._last.status} {_result(self._last)}" if self._last else ""

    def _time_left(self) -> str:
        if not self._predicted_s:
            return ""
        left = sum(map(self._predict, self._left)) * self._taken_s / self._predicted_s
        return f"about {_clock(left)} left"


def _result(record: Record) -> str:
    return f"{record.tflops:.3g} TFLOP/s" if record.tflops is not None else record.reason or ""


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes}:{rest:02}"
