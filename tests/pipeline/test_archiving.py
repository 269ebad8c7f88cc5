"""`snakemake archive`: one target, what it reruns for, and a study that goes on from its archive alone."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

from workspace import Workspace

NOTHING = "Nothing to be done"
LONG_AGO = 315532800  # 1980, in seconds since 1970


def test_an_archive_is_made_once_holds_and_is_a_checkout(workspace: Workspace, tmp_path_factory) -> None:
    archive = workspace.result("archive.zip")
    assert workspace.succeed("archive").jobs == {"archive": 1}
    content = archive.read_bytes()
    assert NOTHING in workspace.succeed("archive", "-n").output
    assert workspace.succeed("archive", "--forcerun", "archive").jobs == {"archive": 1}
    assert archive.read_bytes() == content
    held = longca(workspace, "archive", "check", str(archive))
    assert (held.returncode, held.stderr) == (0, "")
    # An edit of what it holds and no result is made of packs it again, and does nothing else.
    workspace.edit("envs/huggingface.txt", "# Optional", "# Another, optional")
    assert workspace.succeed("archive", "-n").jobs == {"archive": 1}

    folder = tmp_path_factory.mktemp("unzipped")
    with zipfile.ZipFile(archive) as opened:
        opened.extractall(folder)
    for path in folder.rglob("*"):  # as unzip does, by what the archive says
        os.utime(path, (LONG_AGO, LONG_AGO))
    (folder / "tmp").mkdir()
    unzipped = Workspace(folder)
    assert NOTHING in unzipped.succeed("all", "-n").output
    drawn = unzipped.result("figures/peak_memory.json").read_bytes()
    again = unzipped.succeed("results/tiny/figures/peak_memory.json", "--forcerun", "table", "figure")
    assert again.jobs == {"table": 1, "figure": 1}
    assert unzipped.result("figures/peak_memory.json").read_bytes() == drawn


def longca(workspace: Workspace, *words: str) -> subprocess.CompletedProcess[str]:
    """The workspace's own command, away from its results."""
    return subprocess.run(
        [sys.executable, "-m", "longca", *words],
        cwd=Path("/"),
        env=workspace.environment,
        capture_output=True,
        text=True,
    )
