"""Ranks over several nodes: `longca measure` becomes one srun of itself, where a SLURM job is needed for that."""

import os
import subprocess
import sys

import pytest
import yaml

from longca.measure.world.launching import Nodes, nodes_of
from longca.study.loading import check_study

GRID = {
    "mechanisms": ["ring_p2p"],
    "kernels": ["segments"],
    "patterns": ["causal"],
    "world_sizes": [1, 2, 4, 6, 12, 16],
    "gpus_per_node": 4,
    "tokens_per_rank": [64],
    "heads": ["2-1"],
    "head_dim": 16,
    "dtype": "float32",
}
STUDY = {"study": "nodes", "measure": {"device": "cpu"}, "context_parallel": GRID}


@pytest.mark.parametrize(
    ("world_size", "nodes", "each"), [(1, 1, 1), (2, 1, 2), (4, 1, 4), (6, 2, 3), (12, 3, 4), (16, 4, 4)]
)
def test_ranks_are_spread_over_the_fewest_nodes_evenly(world_size, nodes, each):
    assert nodes_of(check_study(STUDY, "test"), world_size) == Nodes(nodes, each)


def test_of_several_grids_the_one_with_the_smallest_nodes_counts():
    grids = [GRID, GRID | {"patterns": ["full"], "gpus_per_node": 1, "world_sizes": [2]}]
    study = check_study(STUDY | {"context_parallel": grids}, "test")
    assert nodes_of(study, 2) == Nodes(2, 1) and nodes_of(study, 4) == Nodes(1, 4)


@pytest.fixture
def measure(tmp_path):
    """Runs `longca measure` of these series in SLURM job 7, whose srun says how it was called."""
    tools = {
        "srun": 'for word in "$@"; do echo "$word"; done',
        "squeue": "echo '7|RUNNING|2026-01-01T00:00:00|10:00|48'",
    }
    (tmp_path / "bin").mkdir()
    for name, text in tools.items():
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    study = tmp_path / "a study.yaml"
    study.write_text(yaml.safe_dump(STUDY))

    def run(only):
        return subprocess.run(
            [sys.executable, "-m", "longca", "measure", "--study", str(study), "--only", only],
            cwd=tmp_path,
            env={**os.environ, "SLURM_JOB_ID": "7", "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
        )

    return run


def test_the_command_is_started_once_a_rank(measure, tmp_path):
    done = measure("world_size=12")
    assert (done.returncode, done.stderr) == (0, "")
    own = ["-m", "longca", "measure", "--study", str(tmp_path / "a study.yaml"), "--only", "world_size=12"]
    asked = ["--nodes=3", "--ntasks=12", "--ntasks-per-node=4", "--cpus-per-task=4"]
    assert done.stdout.splitlines() == [*asked, sys.executable, *own]


def test_series_of_several_numbers_of_ranks_are_no_one_srun(measure):
    done = measure("family=context_parallel")
    assert done.returncode == 2 and not done.stdout
    assert "series of 1, 2, 4, 6, 12, 16 ranks; right: over several nodes those of one number" in done.stderr
