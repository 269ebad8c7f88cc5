"""One writer a journal, known by host, process and job; a dead writer's lock is taken over."""

import json
import os
import platform
import sys
import time
from pathlib import Path
from types import TracebackType

import psutil

from longca.measure.budget import NO_LIMIT, Budget
from longca.measure.slurm import NoAnswerError, find_job, own_job

_POLL_S = 1.0
# Of a holder elsewhere SLURM is asked, by every job that waits.
_POLL_ELSEWHERE_S = 15.0


class JournalLock:
    """Waits until the journal's lock is free or its holder is dead, then holds it until the end of the `with` block.

    Raises OutOfBudgetError where the budget ends while it waits.
    """

    def __init__(self, journal: Path, budget: Budget = NO_LIMIT) -> None:
        self._path, self._budget, self._text = journal.with_suffix(".lock"), budget, json.dumps(_myself())

    def __enter__(self) -> "JournalLock":
        self._path.parent.mkdir(parents=True, exist_ok=True)
        said = False
        while not self._try():
            holder = self._holder()
            if holder is not None and _alive(holder):
                if not said:
                    print(f"waiting for {self._path}, held by {_named(holder)}", file=sys.stderr, flush=True)
                    said = True
                time.sleep(self._budget.left(_POLL_S if _is_here(holder) else _POLL_ELSEWHERE_S))
            elif holder is not None:
                self._take_from(holder)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        # Its own alone: a machine that was taken for dead may come back.
        if self._holder() == self._text:
            self._path.unlink()

    def _try(self) -> bool:
        # Written aside and linked: a lock file that exists is always whole, and only one writer can make it.
        aside = self._path.with_name(f".{self._path.name}.{platform.node()}.{os.getpid()}")
        aside.write_text(self._text, encoding="utf-8")
        try:
            os.link(aside, self._path)
        except FileExistsError:
            return False
        finally:
            aside.unlink()
        return True

    def _holder(self) -> str | None:
        """The text of the lock; None where it was let go in between."""
        try:
            return self._path.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            return None

    def _take_from(self, holder: str) -> None:
        """Remove a dead writer's lock; of several that try, the one whose rename succeeds removes the right file."""
        aside = self._path.with_name(f".{self._path.name}.dead.{platform.node()}.{os.getpid()}")
        try:
            self._path.rename(aside)
        except FileNotFoundError:
            return
        if aside.read_text(encoding="utf-8", errors="replace") != holder:
            # Another writer had taken over in between: its lock is put back.
            os.link(aside, self._path)
        aside.unlink()


def _myself() -> dict[str, object]:
    number = own_job()
    return {
        "host": platform.node(),
        "pid": os.getpid(),
        "started": psutil.Process().create_time(),
        "job": number,
        "job_started": _job_started(number),
    }


def _job_started(number: str | None) -> str | None:
    """When a SLURM job started; None where that is not known."""
    try:
        job = find_job(number) if number else None
    except NoAnswerError:
        return None
    return job.started if job else None


def _parse(holder: str) -> dict[str, object] | None:
    """Who holds a lock; None for a text that no writer leaves, as after a power cut."""
    try:
        found = json.loads(holder)
        return found if {"host", "pid", "started", "job", "job_started"} <= set(found) else None
    except (ValueError, TypeError):
        return None


def _named(holder: str) -> str:
    known = _parse(holder)
    assert known is not None
    return f"process {known['pid']} on {known['host']}" + (f", job {known['job']}" if known["job"] else "")


def _is_here(text: str) -> bool:
    holder = _parse(text)
    return holder is not None and holder["host"] == platform.node()


def _alive(text: str) -> bool:
    """Whether a lock's writer still runs: on this host by its process, elsewhere by its SLURM job where it has one."""
    holder = _parse(text)
    if holder is None:
        return False
    if _is_here(text):
        try:
            return psutil.Process(int(str(holder["pid"]))).create_time() == holder["started"]
        except (psutil.NoSuchProcess, ValueError):
            return False
    return _job_alive(str(holder["job"]), holder["job_started"]) if holder["job"] else True


def _job_alive(number: str, started: object) -> bool:
    """Whether this very run of a job goes on. After a requeue, perhaps as the job that asks, it is another one."""
    try:
        job = find_job(number)
    except NoAnswerError:
        return True
    return job is not None and job.alive and started in (None, job.started)
