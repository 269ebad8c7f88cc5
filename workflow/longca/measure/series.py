"""Measuring a series: its journal, case by case, then its records file in one rename."""

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from longca.cases import Case, Series
from longca.files import write_atomically
from longca.masks.blocks import BlockMap
from longca.masks.mask import Mask
from longca.measure.budget import Budget, OutOfBudgetError
from longca.measure.job import Job
from longca.measure.journal import Journal, case_key, thaw_journal
from longca.measure.lock import JournalLock
from longca.measure.masks import case_mask
from longca.measure.protocol import Outcome
from longca.measure.record import Record
from longca.measure.skipping import refuse_unskipped
from longca.study.model import Protocol as MeasuringProtocol
from longca.study.model import Study

Progress = Callable[[int, Record, bool], None]
"""Called after each case with its number from 1, its record, and whether it was kept from the journal."""


class Session(Protocol):
    """What a series is measured with: one worker process of a kernel, or a world of ranks."""

    protocol: MeasuringProtocol

    @property
    def fingerprint(self) -> str:
        """Of the source and the versions really imported."""

    @property
    def environment(self) -> dict[str, Any]:
        """What every record says of where it was measured."""

    def measure(
        self, case: Case, mask: Mask | BlockMap, mask_file: Path, timeout_s: float
    ) -> tuple[Record, Outcome]:
        """The record of a case, and the outcome behind it."""

    def take_importing_s(self) -> float:
        """Seconds waited, since this was last asked, for processes to start and to import their library."""


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
        self.job = Job.begin(str(series.name))
        # Both passes have one mask, and a long one takes a while to draw.
        self._mask: tuple[Path, Mask | BlockMap] | None = None

    def run(
        self,
        session: Session,
        budget: Budget,
        progress: Progress,
        cases: Sequence[Case] | None = None,
    ) -> None:
        """Measure what the journal does not hold of `cases` (None: of all), and write the records file.

        There is one once every case of the series is in the journal, and none before: an earlier one, of a smaller
        grid, would be read as this series' whole. Raises OutOfBudgetError, LongcaError.
        """
        wanted = self.series.cases if cases is None else cases
        try:
            with JournalLock(self.journal_file, budget):
                thaw_journal(self.journal_file, self.records_file)
                journal = Journal(self.journal_file)
                found = {case: self._record(case, session, journal, budget, progress) for case in wanted}
                self._write_records(self._whole(found, session, journal))
        except OutOfBudgetError:
            self._write_records(None)
            raise
        finally:
            self.job.importing_s = session.take_importing_s()
            self.job.wall_s = time.monotonic() - self.started
            self._write_job()

    def _write_records(self, records: list[Record] | None) -> None:
        if records is None:
            self.records_file.unlink(missing_ok=True)
        else:
            # The journal keeps what was measured; what it comes to beside the other densities stands in the records.
            judged = refuse_unskipped(records) if self.series.family == "sparse" else records
            write_atomically(self.records_file, "".join(record.to_line() + "\n" for record in judged))

    def _whole(self, found: dict[Case, Record], session: Session, journal: Journal) -> list[Record] | None:
        """The records of all cases of the series in their order, or None where one is still to be measured."""
        rest = [case for case in self.series.cases if case not in found]
        if not all(map(journal.knows, rest)):
            return None
        for case in rest:
            kept = journal.get(self._key(case, session), session.protocol.sampling)
            if kept is None:
                return None
            found[case] = kept
        return [found[case] for case in self.series.cases]

    def _record(
        self, case: Case, session: Session, journal: Journal, budget: Budget, progress: Progress
    ) -> Record:
        number = self.series.cases.index(case) + 1
        key = self._key(case, session)
        kept = journal.get(key, session.protocol.sampling)
        if kept is not None and kept.status not in self.retry:
            self.job.kept_cases += 1
            progress(number, kept, True)
            return kept
        timeout_s = budget.left(session.protocol.case_timeout)
        mask_file = self.results / case.mask_file
        record, outcome = session.measure(case, self._case_mask(case), mask_file, timeout_s)
        if record.status == "timeout" and timeout_s < session.protocol.case_timeout:
            raise OutOfBudgetError  # it was the budget that ended, not the case's own time
        if outcome.timed_from is not None and self.job.to_first_measurement_s is None:
            self.job.to_first_measurement_s = outcome.timed_from - self.started
        self.job.preparing_s += outcome.prepared_for_s
        self.job.verifying_s += outcome.verified_for_s
        self.job.measuring_s += outcome.timed_for_s
        self.job.measured_cases += 1
        journal.append(key, record)
        progress(number, record, False)
        return record

    def _key(self, case: Case, session: Session) -> str:
        mask, device = self._case_mask(case), session.environment["device"]
        return case_key(case.columns(), mask.digest, session.fingerprint, session.protocol.sampling, device)

    def _case_mask(self, case: Case) -> Mask | BlockMap:
        if self._mask is None or self._mask[0] != case.mask_file:
            self._mask = case.mask_file, case_mask(self.study, self.results, case)
        return self._mask[1]

    def _write_job(self) -> None:
        path = self.results / "jobs" / self.series.name.with_suffix(".jsonl")
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab+") as file:
            # A line that a killed job left torn stays a line of its own, and spoils no other.
            file.seek(max(0, file.seek(0, os.SEEK_END) - 1))
            torn = file.read(1) not in (b"", b"\n")
            file.write(b"\n" * torn + self.job.to_line().encode() + b"\n")
