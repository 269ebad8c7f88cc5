"""What SLURM says of a job: whether it runs, since when, and for how long it still may."""

import os
import re
import subprocess
import sys
from dataclasses import dataclass

# States in which processes of a job may be alive.
_ALIVE = {"RUNNING", "SUSPENDED", "STOPPED", "SIGNALING", "COMPLETING", "STAGE_OUT", "RESIZING"}
# Ending a worker, writing the account, and two Snakemake processes around it that end as well.
_TO_END_S = 30.0
_ANSWER_S = 60.0


class NoAnswerError(Exception):
    """SLURM does not answer: nothing is known of the job."""


@dataclass(frozen=True)
class SlurmJob:
    """A job as squeue knows it. started: as it says it, another time after a requeue; left_s: None without a limit.

    cpus: of all its nodes together.
    """

    state: str
    started: str
    left_s: float | None
    cpus: int

    @property
    def alive(self) -> bool:
        """Whether it has processes."""
        return self.state in _ALIVE


def own_job() -> str | None:
    """The number of the SLURM job this process belongs to, or None."""
    return os.environ.get("SLURM_JOB_ID")


def find_job(number: str) -> SlurmJob | None:
    """A job by its number; None where SLURM has forgotten it. Raises NoAnswerError."""
    command = ["squeue", "--noheader", "--states=all", "--jobs", number, "--format=%A|%T|%S|%L|%C"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=_ANSWER_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoAnswerError(str(error)) from error
    if answer.returncode != 0:
        if "Invalid job id" in answer.stderr:
            return None
        raise NoAnswerError(f"squeue: {answer.stderr.strip()[-200:]}")
    # The number of an array is also that of one of its tasks: all of them are listed.
    lines = [line.strip().split("|") for line in answer.stdout.splitlines()]
    own = [words for words in lines if len(words) == 5 and words[0] == number]
    running = [words for words in own if words[1] in _ALIVE]
    found = (SlurmJob(words[1], words[2], _seconds(words[3]), int(words[4])) for words in running or own)
    return next(found, None)


def within_job(budget_s: float | None) -> float | None:
    """A time budget (seconds, None: no limit) that ends before the SLURM job around this process, if any, must."""
    number = own_job()
    try:
        job = find_job(number) if number else None
    except NoAnswerError as error:
        print(f"the time left to SLURM job {number} is not known: {error}", file=sys.stderr, flush=True)
        return budget_s
    if job is None or job.left_s is None:
        return budget_s
    return min(job.left_s - _TO_END_S, float("inf") if budget_s is None else budget_s)


def _seconds(left: str) -> float | None:
    """SLURM's days-hours:minutes:seconds, each larger part left out where it is 0; a word is no limit."""
    found = re.fullmatch(r"(?:(?:(\d+)-)?(\d+):)?(\d+):(\d+)", left)
    if found is None:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)
