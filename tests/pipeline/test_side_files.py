"""What measuring leaves beside the records, and tables, figures or an archive are made of: another one is seen."""

import csv
import json
import shutil

from workspace import TINY, Workspace

CELL = {"kernel": "sdpa", "seqlen": 64, "heads": "2-1", "head_dim": 16, "dtype": "float32", "every": "9h"}
CONTROLLED = {**TINY, "measure": {**TINY["measure"], "control": CELL}}
# All but the figure that is drawn from masks.
REPORTED = {"table": 3, "figure": 6, "report": 1, "archive": 1}


def test_controls_and_cells_measured_again_are_seen_once_they_are_others(workspace: Workspace) -> None:
    workspace.write_study(CONTROLLED)
    for name in ("records", "journals"):
        shutil.rmtree(workspace.result(name))
    assert workspace.succeed("archive").jobs == {"controls": 1, "measure_dense": 4, **REPORTED}
    assert "Nothing to be done" in workspace.succeed("archive", "-n").output
    controls = workspace.result("controls.jsonl")
    (control,) = [json.loads(line) for line in controls.read_text().splitlines()]
    assert not any("control" in flags for flags in dense_flags(workspace))

    # As one that was measured on another day: half as fast, so that the first is off their median.
    latency = {name: 2 * value for name, value in control["latency_ms"].items()}
    samples = [2 * sample for sample in control["samples_ms"]]
    slower = {**control, "control": "another", "latency_ms": latency, "samples_ms": samples}
    slower["tflops"] /= 2
    with controls.open("a") as lines:
        lines.write(json.dumps(slower) + "\n")
    assert workspace.succeed("archive").jobs == REPORTED
    assert all("control_off" in flags for flags in dense_flags(workspace))
    assert "Nothing to be done" in workspace.succeed("archive", "-n").output
    workspace.result("repeats").mkdir()
    shutil.copy(
        workspace.result("records/dense/auto/sdpa/causal/2-1.jsonl"), workspace.result("repeats/0.jsonl")
    )
    assert workspace.succeed("archive", "-n").jobs == {"report": 1, "archive": 1}


def dense_flags(workspace: Workspace) -> list[str]:
    """The flags of each row of the table of dense kernels."""
    with workspace.result("tables/dense.csv").open() as table:
        return [row["flags"] for row in csv.DictReader(table)]
