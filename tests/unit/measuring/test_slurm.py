"""What SLURM says of a job, through a squeue that answers as a real one: whose lock is whose, and the time left."""

import json
from pathlib import Path

import pytest

from longca.measure.budget import Budget, OutOfBudgetError
from longca.measure.lock import JournalLock
from longca.measure.slurm import NoAnswerError, SlurmJob, find_job, within_job

STARTED = "2026-01-01T00:00:00"
GONE = "echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1"
DOWN = "echo 'slurm_load_jobs error: Unable to contact slurm controller (connect failure)' >&2; exit 1"


@pytest.fixture
def squeue(monkeypatch, tmp_path):
    """Writes a squeue that prints these lines, or runs this text of a shell."""

    def write(*lines, script=None):
        tool = tmp_path / "bin" / "squeue"
        tool.parent.mkdir(exist_ok=True)
        tool.write_text("#!/bin/sh\n" + (script or "cat <<'LINES'\n" + "\n".join(lines) + "\nLINES\n"))
        tool.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tool.parent}:/usr/bin:/bin")

    return write


@pytest.mark.parametrize(
    ("left", "seconds"),
    [
        ("0:07", 7),
        ("12:30", 750),
        ("3:00:01", 10801),
        ("2-00:00:30", 172830),
        ("UNLIMITED", None),
        ("INVALID", None),
    ],
)
def test_the_time_left_is_read_in_all_its_forms(squeue, left, seconds):
    squeue(f"7|RUNNING|{STARTED}|{left}|4")
    assert find_job("7") == SlurmJob("RUNNING", STARTED, seconds, 4)


def test_of_an_array_whose_number_a_task_has_that_task_is_found(squeue):
    squeue("7|PENDING|N/A|1:00|4", "8|RUNNING|x|1:00|4", f"7|RUNNING|{STARTED}|9:00|4")
    assert find_job("7") == SlurmJob("RUNNING", STARTED, 540, 4)


def test_a_job_that_slurm_forgot_is_told_from_a_slurm_that_does_not_answer(squeue, monkeypatch, tmp_path):
    squeue(script=GONE)
    assert find_job("7") is None
    squeue(script=DOWN)
    with pytest.raises(NoAnswerError, match="Unable to contact"):
        find_job("7")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoAnswerError, match="squeue"):
        find_job("7")


def test_a_budget_ends_before_the_job_does(squeue, monkeypatch, capsys):
    squeue(f"7|RUNNING|{STARTED}|10:00|4")
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    assert within_job(None) is None and within_job(900.0) == 900.0
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    assert within_job(None) == within_job(900.0) == 570.0
    assert within_job(60.0) == 60.0
    squeue(f"7|RUNNING|{STARTED}|UNLIMITED|4")
    assert within_job(None) is None and within_job(900.0) == 900.0
    squeue(script=DOWN)
    assert within_job(900.0) == 900.0
    assert "the time left to SLURM job 7 is not known" in capsys.readouterr().err


def lock_of(tmp_path: Path, **holder: object) -> Path:
    """A journal whose lock somebody on another host has."""
    known = {"host": "elsewhere", "pid": 1, "started": 0.0, "job": "7", "job_started": STARTED}
    (tmp_path / "4-2.lock").write_text(json.dumps(known | holder))
    return tmp_path / "4-2.jsonl"


@pytest.mark.parametrize(
    "line",
    [
        "7|COMPLETED|" + STARTED + "|0:00|4",
        "7|PENDING|N/A|10:00|4",
        "7|NODE_FAIL|" + STARTED + "|0:00|4",
        # Requeued, and running once more: as the very job that asks.
        "7|RUNNING|2026-01-01T01:00:00|10:00|4",
        "9|RUNNING|" + STARTED + "|10:00|4",
    ],
)
def test_the_lock_of_a_job_that_ended_elsewhere_is_taken_over(squeue, monkeypatch, tmp_path, line):
    squeue(line)
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    with JournalLock(lock_of(tmp_path), Budget.of(20)):
        assert json.loads((tmp_path / "4-2.lock").read_text())["host"] != "elsewhere"
    assert not (tmp_path / "4-2.lock").exists()


def test_the_lock_of_a_forgotten_job_is_taken_over(squeue, tmp_path):
    squeue(script=GONE)
    with JournalLock(lock_of(tmp_path), Budget.of(20)):
        pass


@pytest.mark.parametrize("started", [STARTED, None])
@pytest.mark.parametrize("state", ["RUNNING", "COMPLETING", "SUSPENDED"])
def test_the_lock_of_a_job_that_runs_elsewhere_is_waited_for(squeue, tmp_path, state, started):
    squeue(f"7|{state}|{STARTED}|10:00|4")
    with pytest.raises(OutOfBudgetError), JournalLock(lock_of(tmp_path, job_started=started), Budget.of(0.2)):
        pass
    assert "elsewhere" in (tmp_path / "4-2.lock").read_text()


def test_while_slurm_does_not_answer_a_lock_is_waited_for(squeue, tmp_path, capsys):
    squeue(script=DOWN)
    with pytest.raises(OutOfBudgetError), JournalLock(lock_of(tmp_path), Budget.of(0.2)):
        pass
    assert "held by process 1 on elsewhere, job 7" in capsys.readouterr().err


def test_one_that_was_taken_for_dead_leaves_the_others_lock(tmp_path):
    """As a machine does that was cut off and comes back."""
    journal = lock_of(tmp_path)
    with JournalLock(tmp_path / "own.jsonl"):
        (tmp_path / "own.lock").write_text(journal.with_suffix(".lock").read_text())
    assert "elsewhere" in (tmp_path / "own.lock").read_text()
