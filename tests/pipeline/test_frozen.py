"""A frozen study in a clone of the repository: tables, figures and the report are made again, nothing else is."""

import shutil
import subprocess
import sys
from pathlib import Path

from workspace import TINY, Workspace

FROZEN = {**TINY, "frozen": True}
MADE_AGAIN = {"table", "tables", "figure", "figures", "report", "all"}


def git(folder: Path, *words: str) -> str:
    """Run git as somebody, in a folder; what it prints."""
    somebody = ("-c", "user.name=somebody", "-c", "user.email=somebody@example.org")
    command = ["git", "-C", str(folder), *somebody, *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def longca(workspace: Workspace, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a longca command in a workspace."""
    command = [sys.executable, "-m", "longca", *words]
    return subprocess.run(
        command, cwd=workspace.folder, env=workspace.environment, capture_output=True, text=True
    )


def clone(workspace: Workspace, repository: Path, folder: Path) -> Workspace:
    """Freeze the workspace's study, commit what the repository's .gitignore lets in, and clone that."""
    workspace.write_study(FROZEN)
    # Samples have fewer digits then, and so has the one table that holds them.
    for words in (["freeze"], ["tables", "dense"]):
        made = longca(workspace, *words, "--study", "tiny.yaml")
        assert made.returncode == 0, made.stderr
    ignored = (repository / ".gitignore").read_text().replace("results/h200/", "results/tiny/")
    (workspace.folder / ".gitignore").write_text(ignored + "tmp/\n")
    git(workspace.folder, "init", "--quiet")
    git(workspace.folder, "add", "--all")
    git(workspace.folder, "commit", "--quiet", "--message", "A frozen study")
    git(folder.parent, "clone", "--quiet", str(workspace.folder), str(folder))
    (folder / "tmp").mkdir()
    return Workspace(folder)


def test_a_clone_makes_tables_figures_and_report_again_and_measures_nothing(
    workspace: Workspace, repository: Path, tmp_path_factory
) -> None:
    cloned = clone(workspace, repository, tmp_path_factory.mktemp("elsewhere") / "clone")
    kept = {path.name for path in cloned.result(".").iterdir()}
    assert kept == {"documents", "environments", "figures", "jobs", "lengths", "masks", "records", "tables"}
    assert {path.suffix for path in cloned.result("figures").iterdir()} == {".svg", ".json"}
    assert {path.suffix for path in cloned.result("tables").iterdir()} == {".parquet", ".md", ".tex"}
    (environment,) = cloned.result("environments").iterdir()
    assert (
        f'"digest":"{environment.stem}"'
        in cloned.result("records/dense/auto/sdpa/causal/2-1.jsonl").read_text()
    )

    # As for someone who has the records alone, and whose clone lies elsewhere.
    for name in ("tables", "figures"):
        shutil.rmtree(cloned.result(name))
    planned = cloned.succeed("all", "-n").jobs
    assert planned and set(planned) <= MADE_AGAIN
    assert set(cloned.succeed("all").jobs) <= MADE_AGAIN
    assert cloned.result("report.html").exists() and cloned.result("figures/support.pdf").exists()
    # What is made again is what was committed, to the byte.
    assert git(cloned.folder, "status", "--porcelain") == ""
    assert "Nothing to be done" in cloned.succeed("all", "dense", "masks", "-n").output
    checked = longca(cloned, "freeze", "--check", "--study", "tiny.yaml")
    assert checked.stdout == "4 masks are those of the records\n"

    refused = longca(cloned, "measure", "--study", "tiny.yaml")
    assert refused.returncode == 2
    assert "tiny.yaml: study tiny is frozen: its records are inputs" in refused.stderr

    cloned.result("records/dense/auto/sdpa/causal/2-1.jsonl").unlink()
    run = cloned.run("all", "-n")
    assert run.code != 0
    said = (
        "its records and masks are inputs: results/tiny/records/dense/auto/sdpa/causal/2-1.jsonl is not there"
    )
    assert run.output.count(said) == 1 and "Traceback" not in run.output


def test_a_study_no_longer_frozen_goes_on_from_its_records(
    workspace: Workspace, repository: Path, tmp_path_factory
) -> None:
    cloned = clone(workspace, repository, tmp_path_factory.mktemp("elsewhere") / "clone")
    before = cloned.records("dense/auto/sdpa/causal/2-1")
    longer = {
        **TINY,
        "dense": {**TINY["dense"], "kernels": ["sdpa"], "patterns": ["causal"], "seqlens": [64, 96]},
    }
    cloned.write_study(longer)
    measured = longca(cloned, "measure", "--study", "tiny.yaml")
    assert measured.stderr.count("ok, kept") == 2, measured.stderr
    after = cloned.records("dense/auto/sdpa/causal/2-1")
    assert [record["measured_at"] for record in after[:2]] == [record["measured_at"] for record in before[:2]]
    assert [record["seqlen"] for record in after] == [64, 64, 96, 96]
    assert all("device" in record["environment"] for record in after)
