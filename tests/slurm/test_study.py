"""A study on a cluster: whatever ends its jobs, the next run goes on, and what was measured is not measured again."""

import os
import signal

from cluster import Cluster, wait_until
from slurm_workspace import HANG, KERNEL, RANKS, SlurmWorkspace

PATTERNS = ("full", "causal", "causal_document")
NAIVE = {pattern: f"dense/auto/naive/{pattern}/2-1" for pattern in PATTERNS}
SDPA = [f"dense/auto/sdpa/{pattern}/2-1" for pattern in PATTERNS]


def test_whatever_ends_a_job_nothing_measured_is_lost_or_measured_again(
    cluster: Cluster, workspace: SlurmWorkspace
) -> None:
    workspace.edit(KERNEL, "    import torch\n", HANG)
    (workspace.folder / "hang").touch()
    run = workspace.start(*(f"results/slurm/records/{series}.jsonl" for series in NAIVE.values()))
    hangs = [workspace.folder / f"hangs.{pattern}" for pattern in PATTERNS]
    wait_until(
        lambda: run.poll() is not None or all(file.exists() for file in hangs),
        "the second length of every pattern",
        known=(workspace.folder / "output").read_text,
    )
    assert run.poll() is None, (workspace.folder / "output").read_text()
    first = {series: workspace.journal(series) for series in NAIVE.values()}
    assert [len(lines) for lines in first.values()] == [2, 2, 2]
    jobs = {pattern: workspace.writer(series) for pattern, series in NAIVE.items()}
    nodes = {pattern: cluster.job(job, "%N") for pattern, job in jobs.items()}
    assert len(set(nodes.values())) == 3
    for job in jobs.values():
        cluster.wait_for(job, "RUNNING", "every job at once")

    # One is cancelled, one's node goes down, one comes to its limit; then Snakemake is stopped by Ctrl-C.
    cluster.run("scancel", jobs["causal"])
    cluster.run("scontrol", "update", f"jobid={jobs['causal_document']}", "timelimit=1")
    cluster.fail(nodes["full"])
    cluster.wait_for(jobs["causal"], "CANCELLED", "the end of the cancelled job")
    cluster.wait_for(jobs["causal_document"], "TIMEOUT", "the end at the limit")
    cluster.wait_for(jobs["full"], "RUNNING", "the requeued job")
    assert cluster.job(jobs["full"], "%N") != nodes["full"]
    os.kill(run.pid, signal.SIGINT)
    assert run.wait(600) != 0
    wait_until(
        lambda: not cluster.active(),
        "the end of all jobs",
        known=lambda: "\n".join(map(cluster.story, cluster.active())),
    )
    assert {series: workspace.journal(series) for series in NAIVE.values()} == first
    assert not any(workspace.result(f"records/{series}.jsonl").exists() for series in NAIVE.values())

    cluster.repair(nodes["full"])
    (workspace.folder / "hang").unlink()
    workspace.succeed_to("all")
    for series in (*NAIVE.values(), *SDPA):
        journal, records = workspace.journal(series), workspace.records(series)
        places = [(record["seqlen"], record["pass"]) for record in records]
        assert places == [(64, "forward"), (64, "backward"), (128, "forward"), (128, "backward")]
        assert {record["status"] for record in records} == {"ok"}
        assert len({line["key"] for line in journal}) == len(journal) == 4
        assert journal[:2] == first.get(series, journal[:2])
    ranks = workspace.records(RANKS)
    assert [(record["pass"], record["status"]) for record in ranks] == [("forward", "ok"), ("backward", "ok")]
    assert {(record["world_size"], record["environment"]["ranks_per_host"]) for record in ranks} == {(4, 2)}
    assert workspace.result("report.html").exists()
    assert "Nothing to be done" in workspace.succeed_to("all", "-n")
    assert not list(workspace.result("journals").rglob("*.lock"))
