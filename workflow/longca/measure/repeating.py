"""Measuring some cells a second time, in a run of their own: how far two runs of the same cell are apart."""

import random
from itertools import groupby
from pathlib import Path

from rich.console import Console

from longca.cases import Series, study_series
from longca.errors import LongcaError
from longca.measure.budget import Budget
from longca.measure.controls import Controls
from longca.measure.device_lock import timing_lock
from longca.measure.journal import Journal, case_key
from longca.measure.masks import case_mask
from longca.measure.record import Record, read_records
from longca.measure.session import KernelSession
from longca.study.model import Study

_ON_ONE_DEVICE = ("dense", "sparse")


def repeat_cells(
    study: Study, results: Path, number: int, seed: int, budget: Budget, console: Console
) -> None:
    """Measure `number` cells that are ok again, drawn by `seed`, into repeats/<seed>.jsonl; a stopped run goes on.

    Raises LongcaError where nothing is ok yet, and OutOfBudgetError where the budget ends.
    """
    ok = [record for one in study_series(study) for record in measured_records(results, one)]
    ok = [record for record in ok if record.status == "ok" and record.family in _ON_ONE_DEVICE]
    if not ok:
        raise LongcaError(
            f"study {study.study} has no case of a dense or sparse kernel that is ok; right: measure one, then repeat"
        )
    drawn = random.Random(seed).sample(ok, min(number, len(ok)))
    drawn.sort(key=lambda record: (record.family, record.kernel))
    journal = Journal(results / "repeats" / f"{seed}.jsonl")
    controls = Controls(study, results, budget)
    for (family, kernel), of_kernel in groupby(drawn, key=lambda record: (record.family, record.kernel)):
        lock = timing_lock(study.measure.device, budget)
        with lock, KernelSession(family, kernel, study.measure, budget) as session:
            session.control = controls.current(session.opened.environment)
            for first in of_kernel:
                second = _again(study, results, first, session, journal, budget)
                console.print(_line(first, second), markup=False, highlight=False, soft_wrap=True)


def measured_records(results: Path, series: Series) -> list[Record]:
    """The records of a series; where it is not done, what its journal holds of its cases, the last of a case."""
    records, journal = (
        results / kind / series.name.with_suffix(".jsonl") for kind in ("records", "journals")
    )
    if records.exists():
        return read_records(records)
    found = {record.case: record for record in Journal(journal).keys().values()} if journal.exists() else {}
    return [found[case] for case in series.cases if case in found]


def _again(
    study: Study, results: Path, first: Record, session: KernelSession, journal: Journal, budget: Budget
) -> Record:
    case = first.case
    mask, device = case_mask(study, results, case), session.environment["device"]
    sampling = session.protocol.sampling
    key = case_key(case.columns(), mask.digest, session.fingerprint, sampling, device)
    kept = journal.get(key, sampling)
    if kept is not None:
        return kept
    timeout_s = budget.left(session.protocol.case_timeout)
    record, _ = session.measure(case, mask, results / case.mask_file, timeout_s)
    budget.left()  # a case that the budget cut off is none
    journal.append(key, record)
    return record


def _line(first: Record, second: Record) -> str:
    place = f"{first.family} {first.kernel} {first.pattern} {first.seqlen} {first.pass_}"
    if first.latency_ms is None or second.latency_ms is None:
        return f"{place}: {second.status} {second.reason or ''}".rstrip()
    return f"{place}: {second.latency_ms.p50 / first.latency_ms.p50:.3f} of the first latency"
