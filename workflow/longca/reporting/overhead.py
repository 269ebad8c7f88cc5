"""What measuring cost: a job's start to its first measurement, and its share of time spent measuring."""

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from longca.errors import LongcaError
from longca.measure.job import Job
from longca.reporting.names import results_of
from longca.study.model import Study


class Accounts(NamedTuple):
    """A study's jobs, and where lines stand that are no job's account, as file:line."""

    jobs: list[Job]
    skipped: list[str]


def read_jobs(study: Study) -> Accounts:
    """Every job of a study, in the order of its files. Raises LongcaError for a file that cannot be read.

    A killed job leaves a torn line, which the next one may write on. No measurement is lost with it, so lines
    that cannot be read are skipped, and told.
    """
    accounts = Accounts([], [])
    for file in sorted((results_of(study) / "jobs").rglob("*.jsonl")):
        _read(file, accounts)
    return accounts


def overhead(accounts: Accounts) -> list[str]:
    """Sentences on what the jobs cost, and on how many lines of their accounts were skipped."""
    return [*_costs(accounts.jobs), *_skips(accounts.skipped)]


def _costs(jobs: Sequence[Job]) -> list[str]:
    """Start and share of the jobs that timed something, the total of all."""
    timed = [(job.to_first_measurement_s, job) for job in jobs if job.to_first_measurement_s is not None]
    wall = sum(job.wall_s for job in jobs)
    if not timed or not wall:
        return ["No job has timed anything yet."]
    starts = [(start, job.series) for start, job in timed]
    shares = [(job.measuring_s / job.wall_s, job.series) for _, job in timed if job.wall_s]
    slowest, least = max(starts), min(shares)
    measured, idle = sum(job.measured_cases for job in jobs), len(jobs) - len(timed)
    return [
        f"{_jobs(len(jobs))}, {idle} without a case to time, measured {measured} cases. "
        f"They took {wall:.0f} s of wall time, {sum(job.measuring_s for job in jobs) / wall:.0%} of it measuring.",
        _after_start(jobs, wall),
        f"From a job's start to its first measurement: {_median(starts):.1f} s at the median, "
        f"{slowest[0]:.1f} s at worst ({slowest[1]}).",
        f"Share of a job's wall time spent measuring: {_median(shares):.0%} at the median, "
        f"{least[0]:.0%} at worst ({least[1]}).",
    ]


def _after_start(jobs: Sequence[Job], wall: float) -> str:
    """What is left of the wall time when libraries are there and kernels compiled, and the share spent measuring."""
    importing, preparing, verifying, measuring, control = (
        sum(getattr(job, name) for job in jobs)
        for name in ("importing_s", "preparing_s", "verifying_s", "measuring_s", "control_s")
    )
    left = wall - importing - preparing - control
    share = f"{measuring / left:.0%}" if left > 0 else "none"
    return (
        f"Starting workers and importing libraries took {importing:.0f} s, preparing and compiling {preparing:.0f} s, "
        f"controls {control:.0f} s. Of the {left:.0f} s left, {share} went into measuring; "
        f"checking results took {verifying:.0f} s."
    )


def _jobs(number: int) -> str:
    return "1 job" if number == 1 else f"{number} jobs"


def _median(named: list[tuple[float, str]]) -> float:
    return statistics.median(value for value, _ in named)


def _skips(places: Sequence[str]) -> list[str]:
    if not places:
        return []
    lines = "1 line that is" if len(places) == 1 else f"{len(places)} lines that are"
    return [f"Left out of this: {lines} no whole account of a job, first {places[0]}."]


def _read(file: Path, accounts: Accounts) -> None:
    """Add what a file has, to the jobs and to the skipped lines."""
    try:
        lines = file.read_bytes().split(b"\n")
    except OSError as error:
        raise LongcaError(f"{file}: cannot be read: {error}") from error
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            accounts.jobs.append(Job.model_validate_json(line))
        except ValidationError:
            accounts.skipped.append(f"{file}:{number}")
