"""What measuring cost: a job's start to its first measurement, and its share of time spent measuring."""

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from longca.errors import LongcaError
from longca.reporting.names import results_of
from longca.study.model import Study

_Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
_Count = Annotated[int, Field(ge=0)]


class Job(BaseModel):
    """One run of `longca measure` on a series; to_first_measurement_s is None where it measured nothing."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    series: str
    started_at: str
    wall_s: _Seconds
    to_first_measurement_s: _Seconds | None
    measuring_s: _Seconds
    measured_cases: _Count
    kept_cases: _Count


def read_jobs(study: Study) -> list[Job]:
    """Every job of a study, in the order of its files. Raises LongcaError naming a bad file and line."""
    files = sorted((results_of(study) / "jobs").rglob("*.jsonl"))
    return [job for file in files for job in _read(file)]


def overhead(jobs: Sequence[Job]) -> list[str]:
    """Sentences on what the jobs cost: start and share of those that timed something, the total of all."""
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
        f"From a job's start to its first measurement: {_median(starts):.1f} s at the median, "
        f"{slowest[0]:.1f} s at worst ({slowest[1]}).",
        f"Share of a job's wall time spent measuring: {_median(shares):.0%} at the median, "
        f"{least[0]:.0%} at worst ({least[1]}).",
    ]


def _jobs(number: int) -> str:
    return "1 job" if number == 1 else f"{number} jobs"


def _median(named: list[tuple[float, str]]) -> float:
    return statistics.median(value for value, _ in named)


def _read(file: Path) -> list[Job]:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise LongcaError(f"{file}: cannot be read: {error}") from error
    lines = text.split("\n")
    # A job killed while it wrote leaves a line without its end: it is no job's account.
    whole = lines[:-1]
    jobs = []
    for number, line in enumerate(whole, 1):
        try:
            jobs.append(Job.model_validate_json(line))
        except ValidationError as error:
            mistake = error.errors()[0]
            key = ".".join(map(str, mistake["loc"])) or "line"
            raise LongcaError(f"{file}:{number}: {key}: {mistake['msg']}") from error
    return jobs
