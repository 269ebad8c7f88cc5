"""Single jobs: started wrongly, near their limit, requeued; ranks over as many nodes."""

import shlex
import subprocess
import sys

import pytest
import yaml
from cluster import Cluster, wait_until
from slurm_workspace import HANG, KERNEL, RANKS, STUDY, SlurmWorkspace

from longca.measure.slurm import find_job

NAIVE = "dense/auto/naive/causal/2-1"


def measure(only: str) -> list[str]:
    return [sys.executable, "-m", "longca", "measure", "--study", STUDY, "--only", only]


@pytest.mark.parametrize(
    ("tasks", "only", "complaint"),
    [
        # As when a job of one GPU is asked to have a task a GPU.
        (
            2,
            "kernel=naive,pattern=causal",
            "dense/auto/naive/causal/2-1: is measured in one process, and slurm started 2",
        ),
        (3, "family=context_parallel", f"{RANKS}: is for 4 ranks, and slurm started 3"),
        (2, "family=context_parallel", f"{RANKS}: is for 4 ranks, and slurm started 2"),
    ],
)
def test_another_number_of_tasks_than_the_series_has_ranks_measures_nothing(
    workspace: SlurmWorkspace, tasks: int, only: str, complaint: str
) -> None:
    command = ["srun", "--nodes=2", f"--ntasks={tasks}", "--time=10", *measure(only)]
    done = subprocess.run(
        command, cwd=workspace.folder, env=workspace.environment, capture_output=True, text=True
    )
    assert done.returncode != 0 and complaint in done.stderr
    assert not (workspace.folder / "results").exists()


def test_before_its_limit_a_job_stops_by_itself_and_keeps_what_it_has(
    cluster: Cluster, workspace: SlurmWorkspace
) -> None:
    workspace.edit(KERNEL, "    import torch\n", HANG)
    (workspace.folder / "hang").touch()
    script = workspace.folder / "job.sh"
    script.write_text(f"#!/bin/sh\nexec {shlex.join(measure('kernel=naive,pattern=causal'))}\n")
    number = workspace.sbatch("--time=1", "--output=job.log", str(script))
    cluster.wait_for(number, "FAILED", "the end of the job")
    assert "ExitCode=75:0" in cluster.run("scontrol", "show", "job", number)
    assert "the time budget ended; what was measured is kept" in (workspace.folder / "job.log").read_text()
    assert {line["seqlen"] for line in workspace.journal(NAIVE)} <= {64}
    assert not workspace.result(f"records/{NAIVE}.jsonl").exists()


def test_a_job_is_told_from_its_earlier_run_and_an_arrays_tasks_from_each_other(
    cluster: Cluster, workspace: SlurmWorkspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_CONF", cluster.environment["SLURM_CONF"])
    assert find_job("4000000") is None
    script = workspace.folder / "job.sh"
    script.write_text("#!/bin/sh\nsleep 600\n")
    number = workspace.sbatch("--time=2:00:00", "--requeue", "--nodes=2", "--output=job.log", str(script))
    cluster.wait_for(number, "RUNNING", "the job")
    first = find_job(number)
    assert first is not None and first.alive and first.cpus == 2
    assert first.left_s is not None and 7000 < first.left_s <= 7200
    cluster.run("scontrol", "requeue", number)
    cluster.wait_for(number, "PENDING", "the requeued job")
    waiting = find_job(number)
    assert waiting is not None and not waiting.alive
    cluster.wait_for(number, "RUNNING", "its second run")
    second = find_job(number)
    assert second is not None and second.alive and second.started != first.started
    cluster.run("scancel", number)
    cluster.wait_for(number, "CANCELLED", "its end")
    gone = find_job(number)
    assert gone is not None and not gone.alive

    array = workspace.sbatch("--array=1-2", "--output=job.log", str(script))
    wait_until(lambda: len(cluster.active()) == 2, "the array's tasks")
    wait_until(lambda: all(cluster.job(task, "%T") == "RUNNING" for task in cluster.active()), "the array")
    tasks = cluster.active()
    assert array in tasks and len(set(tasks)) == 2
    cluster.run("scancel", f"{array}_1")
    wait_until(lambda: len(cluster.active()) == 1, "the end of one task")
    (left,) = cluster.active()
    known = {task: find_job(task) for task in tasks}
    assert {task: job is not None and job.alive for task, job in known.items()} == {
        task: task == left for task in tasks
    }
    cluster.run("scancel", array)


def test_four_ranks_run_on_as_many_nodes(workspace: SlurmWorkspace) -> None:
    study = yaml.safe_load((workspace.folder / STUDY).read_text())
    study["context_parallel"]["gpus_per_node"] = 1
    workspace.write_study(study, STUDY)
    workspace.succeed_to(f"results/slurm/records/{RANKS}.jsonl")
    records = workspace.records(RANKS)
    assert [(record["pass"], record["status"]) for record in records] == [
        ("forward", "ok"),
        ("backward", "ok"),
    ]
    assert {(record["world_size"], record["environment"]["ranks_per_host"]) for record in records} == {(4, 1)}
