"""What the study comes to, and every target by hand."""

from typing import Any

import yaml
from workspace import TINY, Workspace, read_lines


def test_the_whole_study_is_there(finished: Workspace) -> None:
    for name in ("dense", "support", "verification"):
        for suffix in ("csv", "parquet", "md", "tex"):
            assert finished.result(f"tables/{name}.{suffix}").stat().st_size > 0
    for suffix in ("html", "svg", "pdf", "json"):
        assert finished.result(f"figures/dense_throughput_over_length.{suffix}").stat().st_size > 0
    assert "<html" in finished.result("report.html").read_text()


def test_every_case_has_a_record_and_all_are_verified(finished: Workspace) -> None:
    cases = [
        (record["kernel"], record["pattern"], record["seqlen"], record["pass"], record["status"])
        for kernel in ("naive", "sdpa")
        for pattern in ("causal", "causal_document")
        for record in finished.records(f"dense/auto/{kernel}/{pattern}/2-1")
    ]
    assert cases == [
        (kernel, pattern, seqlen, pass_, "ok")
        for kernel in ("naive", "sdpa")
        for pattern in ("causal", "causal_document")
        for seqlen in (64, 128)
        for pass_ in ("forward", "backward")
    ]


def test_journals_say_how_jobs_spent_their_time(finished: Workspace) -> None:
    (job,) = read_lines(finished.result("jobs/dense/auto/sdpa/causal/2-1.jsonl"))
    assert (job["measured_cases"], job["kept_cases"]) == (4, 0)
    assert 0 < job["measuring_s"] < job["wall_s"]
    assert 0 < job["to_first_measurement_s"] < job["wall_s"]


def test_a_measurement_takes_every_core_with_and_without_the_profile(fresh: Workspace) -> None:
    with_profile = fresh.succeed("dense", "-n", "--cores", "7")
    without = fresh.succeed_bare("dense", "-n", "--cores", "7")
    for run in (with_profile, without):
        jobs = [block for block in run.output.split("\n[") if "rule measure_dense:" in block]
        assert len(jobs) == 4
        assert all("threads: 7\n" in job for job in jobs)


def test_one_mask_by_hand_from_the_default_study(fresh: Workspace) -> None:
    mask = "results/smoke/masks/auto/causal_document/2048/0.json"
    run = fresh.succeed(mask, config=None)
    assert run.jobs == {"lengths": 1, "documents": 1, "document_mask": 1}
    # YAML reads JSON. The first documents of the published sample, the last one cut to 2048 tokens.
    written: dict[str, Any] = yaml.safe_load((fresh.folder / mask).read_text())
    assert written["documents"] == [353, 559, 102, 421, 322, 13, 129, 149]
    assert written["area"] == sum(n * (n + 1) // 2 for n in written["documents"])


def test_results_of_another_study_are_refused_with_what_to_type(fresh: Workspace) -> None:
    run = fresh.run("results/h200/report.html", "-n")
    assert run.code != 0
    assert "results/h200/report.html is of study h200, this run's study is tiny (tiny.yaml)" in run.output
    assert "--configfile" in run.output


def test_a_series_that_the_study_does_not_have_is_refused(fresh: Workspace) -> None:
    run = fresh.run("results/tiny/records/dense/auto/sdpa/causal/64-8.jsonl", "-n")
    assert run.code != 0
    assert "dense/auto/sdpa/causal/64-8 is no series of study tiny (tiny.yaml)" in run.output


def test_a_family_without_a_grid_is_refused_with_what_the_study_lacks(fresh: Workspace) -> None:
    run = fresh.run("dense", "sparse", "-n")
    assert run.code != 0
    assert "study tiny measures no sparse kernels; right: a sparse grid in tiny.yaml" in run.output


def test_no_command_runs_from_the_name_of_a_target(fresh: Workspace) -> None:
    pwned = fresh.folder / "pwned"
    for target in (
        "blocks/uniform_block/512/64/$(touch pwned)0.5/2/0.npz",
        "blocks/uniform_block/512/64/0.5;touch pwned;/2/0.npz",
        "lengths/pile;touch pwned.csv",
    ):
        run = fresh.run(f"results/tiny/{target}")
        assert run.code != 0
        assert not pwned.exists(), target


def test_a_study_inherits_nothing_from_the_default_one(fresh: Workspace) -> None:
    paper = fresh.succeed("all", "-n", config="config/paper.yaml")
    assert "results/paper/" in paper.output
    assert "smoke" not in paper.output
    # smoke says window 128; a study that says nothing gets the default.
    silent = {"study": "silent", "dense": {**TINY["dense"], "patterns": ["causal_sliding_window"]}}
    fresh.write_study(silent, "silent.yaml")
    commands = fresh.succeed("masks", "-n", "--printshellcmds", config="silent.yaml").output
    assert commands.count("--set window=1024 ") == 2
    assert "window=128" not in commands
