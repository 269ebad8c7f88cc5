"""A checkout whose jobs go to the cluster of these tests."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml
from cluster import Cluster
from workspace import Workspace, read_lines

STUDY = "config/test/slurm.yaml"
# Its context-parallel series.
RANKS = "context_parallel/auto/ring_p2p/segments/causal/2-1/4"
# What a site sets, for nodes of two processors. Jobs are looked at soon: here they take seconds.
SITE = {"cores": 2, "slurm-init-seconds-before-status-checks": 1}
SMALL = {"slurm_partition": "main", "runtime": 5, "mem_mb": 500}
OF_SERIES = {"runtime": "10 * attempt", "mem_mb": "2000 * attempt"}
KERNEL = "workflow/longca/kernels/dense/naive.py"
# Stops that kernel on its second length for as long as a file named `hang` is there, and says so in a file.
HANG = """    import torch
    import pathlib
    import threading

    if case.seqlen == 128 and pathlib.Path("hang").exists():
        pathlib.Path(f"hangs.{case.pattern}").touch()
        threading.Event().wait()
"""
OF_RANKS = {"cpus_per_task": 1, "runtime": "10 * attempt", "mem_mb": "3000 * attempt"}


class SlurmWorkspace(Workspace):
    """Runs Snakemake with profiles/slurm; its results are those of config/test/slurm.yaml."""

    def __init__(self, folder: Path, cluster: Cluster) -> None:
        super().__init__(folder)
        self.cluster = cluster
        self._runs: list[subprocess.Popen[str]] = []

    @classmethod
    def at(cls, repository: Path, folder: Path, cluster: Cluster) -> "SlurmWorkspace":
        """A checkout, its profile adapted."""
        Workspace.checkout(repository, folder)
        profile = folder / "profiles" / "slurm" / "config.yaml"
        adapted: dict[str, Any] = yaml.safe_load(profile.read_text()) | SITE
        adapted["default-resources"] |= SMALL
        adapted["set-resources"] |= {"measure_dense": OF_SERIES, "measure_context_parallel": OF_RANKS}
        profile.write_text(yaml.safe_dump(adapted))
        return cls(folder, cluster)

    def command(self, *words: str, config: str | None = STUDY) -> list[str]:
        """A Snakemake command line with the cluster's profile."""
        return [
            sys.executable,
            "-m",
            "snakemake",
            *words,
            "--profile",
            "profiles/slurm",
            "--configfile",
            str(config),
        ]

    @property
    def environment(self) -> dict[str, str]:
        """The cluster's and the checkout's; what jobs inherit."""
        return {
            **super().environment,
            **{name: self.cluster.environment[name] for name in ("SLURM_CONF", "GLOO_SOCKET_IFNAME")},
        }

    def start(self, *words: str, config: str | None = STUDY) -> subprocess.Popen[str]:
        """Start Snakemake; what it says goes to the file output."""
        with (self.folder / "output").open("w") as output:
            run = subprocess.Popen(
                self.command(*words, config=config),
                cwd=self.folder,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,
            )
        self._runs.append(run)
        return run

    def end(self) -> None:
        """End what a test that failed left running."""
        for run in self._runs:
            if run.poll() is None:
                os.killpg(run.pid, signal.SIGKILL)
                run.wait()

    def succeed_to(self, *words: str, config: str | None = STUDY) -> str:
        """Run Snakemake to its end, which must be a success; what it says."""
        code = self.start(*words, config=config).wait(1200)
        output = (self.folder / "output").read_text()
        assert code == 0, output
        return output

    def sbatch(self, *words: str) -> str:
        """Hand a job in; its number."""
        return self.cluster.run("sbatch", "--parsable", *words, cwd=self.folder, env=self.environment).strip()

    def read(self, name: str) -> list[dict[str, Any]]:
        """The JSON objects of a file of the checkout, one a line."""
        return read_lines(self.folder / name)

    def result(self, name: str) -> Path:
        """A file of the study's results."""
        return self.folder / "results" / "slurm" / name

    def journal(self, series: str) -> list[dict[str, Any]]:
        """What a series has measured so far, as `dense/auto/sdpa/causal/2-1`; nothing where it has not begun."""
        file = self.result(f"journals/{series}.jsonl")
        return read_lines(file) if file.exists() else []

    def writer(self, series: str) -> str:
        """The SLURM job that measures a series now."""
        return json.loads(self.result(f"journals/{series}.lock").read_text())["job"]
