"""A killed run goes on by itself."""

import os
import signal
import subprocess

import psutil
from workspace import TINY, Workspace, read_lines

SERIES = "dense/auto/naive/causal/2-1"
# Stops the kernel on its second length for as long as a file named `hang` is there.
HANG = """
    import pathlib
    import threading

    if case.seqlen == 128 and pathlib.Path("hang").exists():
        threading.Event().wait()
"""


def kill_all(run: subprocess.Popen[str]) -> None:
    """SIGKILL for Snakemake and all that it started, as when a machine goes down."""
    started = [psutil.Process(run.pid), *psutil.Process(run.pid).children(recursive=True)]
    for process in started:
        os.kill(process.pid, signal.SIGKILL)
    run.wait()
    assert psutil.wait_procs(started, timeout=60)[1] == []


def wait_for_lines(workspace: Workspace, run: subprocess.Popen[str], lines: int) -> None:
    """Return when the series' journal has so many lines; a run that ends before is a failure."""
    journal = workspace.result(f"journals/{SERIES}.jsonl")
    while not journal.exists() or journal.read_text().count("\n") < lines:
        try:
            output, _ = run.communicate(timeout=0.1)
        except subprocess.TimeoutExpired:
            continue
        raise AssertionError(output)


def test_a_run_killed_in_the_middle_of_a_series_goes_on_by_itself(workspace: Workspace) -> None:
    workspace.write_study({**TINY, "dense": {**TINY["dense"], "kernels": ["naive"], "patterns": ["causal"]}})
    earlier = workspace.records(SERIES)
    workspace.edit(
        "workflow/longca/kernels/dense/naive.py", "    import torch\n", "    import torch\n" + HANG
    )
    (workspace.folder / "hang").touch()
    run = workspace.start("dense")
    # The series' four cases under the unedited kernel, then the first length's two under the edited one.
    wait_for_lines(workspace, run, 6)
    kill_all(run)

    assert not workspace.result(f"records/{SERIES}.jsonl").exists()
    assert workspace.result(f"journals/{SERIES}.lock").exists()
    journal = workspace.result(f"journals/{SERIES}.jsonl")
    before = [{name: value for name, value in line.items() if name != "key"} for line in read_lines(journal)][
        4:
    ]
    assert [(record["seqlen"], record["pass"]) for record in before] == [(64, "forward"), (64, "backward")]
    # The kill came in the middle of a line.
    with journal.open("a") as file:
        file.write('{"key": "half of a li')

    (workspace.folder / "hang").unlink()
    workspace.succeed("dense")
    after = workspace.records(SERIES)
    assert after[:2] == before
    assert [(record["seqlen"], record["pass"], record["status"]) for record in after] == [
        (record["seqlen"], record["pass"], "ok") for record in earlier
    ]
    assert not workspace.result(f"journals/{SERIES}.lock").exists()
    assert "Nothing to be done" in workspace.succeed("dense", "-n").output
