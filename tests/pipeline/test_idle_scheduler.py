"""While a job measures, Snakemake waits: it takes nothing of the cores."""

from workspace import Workspace


def test_snakemake_looks_for_jobs_when_one_has_ended_and_not_in_between(fresh: Workspace) -> None:
    run = fresh.succeed("dense", "--verbose")
    looks = run.output.count("Ready jobs: ")
    assert 0 < looks <= sum(run.jobs.values())
