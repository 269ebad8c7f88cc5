"""Measuring a series: its journal, case by case, then its records file in one rename."""

import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from longca.cases import Series
from longca.files import write_atomically
from longca.measure.budget import Budget, OutOfBudgetError
from longca.measure.journal import Journal, case_key
from longca.measure.lock import JournalLock
from longca.measure.masks import case_mask
from longca.measure.record import Record
from longca.measure.session import KernelSession
from longca.study.model import Study


@dataclass
class Job:
    """How a run of `longca measure` on one series spent its time: a line of jobs/<series>.jsonl."""

    series: str
    started_at: str
    wall_s: float = 0.0
    to_first_measurement_s: float | None = None
    measuring_s: float = 0.0
    measured_cases: int = 0
    kept_cases: int = 0


Progress = Callable[[int, Record, bool], None]
"""Called after each case with its number from 1, its record, and whether it was kept from the journal."""


class SeriesRunner:
    """Measures one series of a study with a session of its kernel, resuming from its journal."""

    def __init__(
        self, study: Study, results: Path, series: Series, retry: frozenset[str], started: float
    ) -> None:
        """`started`: when the process or the series began, seconds of the monotonic clock, for the job's overhead."""
        self.study, self.results, self.series, self.retry, self.started = (
            study,
            results,
            series,
            retry,
            started,
        )
        self.journal_file = results / "journals" / series.name.with_suffix(".jsonl")
        self.records_file = results / "records" / series.name.with_suffix(".jsonl")
        self.job = Job(str(series.name), datetime.now(UTC).isoformat(timespec="seconds"))

    def run(self, session: KernelSession, budget: Budget, progress: Progress) -> None:
        """Measure what the journal does not hold and write the records file. Raises OutOfBudgetError, LongcaError."""
        try:
            with JournalLock(self.journal_file, budget):
                journal = Journal(self.journal_file)
                cases = range(len(self.series.cases))
                records = [self._record(index, session, journal, budget, progress) for index in cases]
                write_atomically(self.records_file, "".join(record.to_line() + "\n" for record in records))
        except OutOfBudgetError:
            # Records of an earlier, smaller grid would be read as this series' whole.
            self.records_file.unlink(missing_ok=True)
            raise
        finally:
            self.job.wall_s = time.monotonic() - self.started
            self._write_job()

    def _record(
        self, index: int, session: KernelSession, journal: Journal, budget: Budget, progress: Progress
    ) -> Record:
        case = self.series.cases[index]
        mask = case_mask(self.study, self.results, case)
        protocol = {"warmups": session.protocol.warmups, "repetitions": session.protocol.repetitions}
        key = case_key(
            case.columns(), mask.digest, session.fingerprint, protocol, session.environment["device"]
        )
        kept = journal.get(key)
        if kept is not None and kept.status not in self.retry:
            self.job.kept_cases += 1
            progress(index + 1, kept, True)
            return kept
        timeout_s = budget.left(session.protocol.case_timeout)
        record, outcome = session.measure(case, mask, self.results / case.mask_file, timeout_s)
        if record.status == "timeout" and timeout_s < session.protocol.case_timeout:
            raise OutOfBudgetError  # it was the budget that ended, not the case's own time
        if outcome.timed_from is not None and self.job.to_first_measurement_s is None:
            self.job.to_first_measurement_s = outcome.timed_from - self.started
        self.job.measuring_s += outcome.timed_for_s
        self.job.measured_cases += 1
        journal.append(key, record)
        progress(index + 1, record, False)
        return record

    def _write_job(self) -> None:
        path = self.results / "jobs" / self.series.name.with_suffix(".jsonl")
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab+") as file:
            # A line that a killed job left torn stays a line of its own, and spoils no other.
            file.seek(max(0, file.seek(0, os.SEEK_END) - 1))
            torn = file.read(1) not in (b"", b"\n")
            file.write(b"\n" * torn + json.dumps(asdict(self.job)).encode() + b"\n")
