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
    """Freeze the workspace's study, commit what the repository's .gitignore lets in of its records, and clone that."""
    workspace.write_study(FROZEN)
    frozen = longca(workspace, "freeze", "--study", "tiny.yaml")
    assert frozen.returncode == 0, frozen.stderr
    for name in ("tables", "figures"):
        shutil.rmtree(workspace.result(name))
    ignored = (repository / ".gitignore").read_text().replace("results/h200/", "results/tiny/")
    (workspace.folder / ".gitignore").write_text(ignored + "tmp/\n")
    git(workspace.folder, "init", "--quiet")
    commit(workspace)
    git(folder.parent, "clone", "--quiet", str(workspace.folder), str(folder))
    (folder / "tmp").mkdir()
    return Workspace(folder)


def commit(workspace: Workspace) -> None:
    """Commit all that is not ignored."""
    git(workspace.folder, "add", "--all")
    git(workspace.folder, "commit", "--quiet", "--message", "A frozen study")


def test_a_clone_makes_tables_figures_and_report_again_and_measures_nothing(
    workspace: Workspace, repository: Path, tmp_path_factory
) -> None:
    cloned = clone(workspace, repository, tmp_path_factory.mktemp("elsewhere") / "clone")
    kept = {path.name for path in cloned.result(".").iterdir()}
    assert kept == {"documents", "environments", "jobs", "lengths", "masks", "records"}
    (environment,) = cloned.result("environments").iterdir()
    line = cloned.result("records/dense/auto/sdpa/causal/2-1.jsonl").read_text()
    assert f'"digest":"{environment.stem}"' in line

    planned = cloned.succeed("all", "-n").jobs
    assert planned and set(planned) <= MADE_AGAIN
    assert set(cloned.succeed("all").jobs) <= MADE_AGAIN
    assert cloned.result("report.html").exists() and cloned.result("figures/support.pdf").exists()
    assert "Nothing to be done" in cloned.succeed("all", "dense", "masks", "-n").output
    checked = longca(cloned, "freeze", "--check", "--study", "tiny.yaml")
    assert checked.stdout == "4 masks are those of the records\n"
    # Nothing that was committed is another; of what was made, pictures and tables go in, in the smaller forms.
    assert {line[:2] for line in git(cloned.folder, "status", "--porcelain").splitlines()} == {"??"}
    commit(cloned)
    added = git(cloned.folder, "ls-files", "results/tiny/tables", "results/tiny/figures").split()
    assert {Path(name).suffix for name in added} == {".parquet", ".md", ".svg", ".json"}
    # Made once more, they are the same to the byte.
    for words in (["tables", "verification"], ["tables", "dense"], ["figures", "support"]):
        assert longca(cloned, *words, "--study", "tiny.yaml").returncode == 0
    assert git(cloned.folder, "status", "--porcelain") == ""

    # A control that was never measured, as of context parallel alone, is nothing to wait for.
    cell = {"kernel": "sdpa", "seqlen": 64, "heads": "2-1"}
    cloned.write_study({**FROZEN, "measure": {**TINY["measure"], "control": cell}})
    assert cloned.succeed("results/tiny/tables/dense.csv", "--forcerun", "table").jobs == {"table": 1}
    cloned.write_study(FROZEN)

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
