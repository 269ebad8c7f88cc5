"""A checkout of its own for a test: real Snakemake runs in it, and edits to its code stay in it."""

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

CODE = (
    "Snakefile",
    "Makefile",
    "pyproject.toml",
    "LICENSE",
    "rules",
    "profiles",
    "config",
    "envs",
    "workflow",
)

# Two patterns, one with documents, and two kernels that compile nothing: seconds for the whole study.
TINY: dict[str, Any] = {
    "study": "tiny",
    "measure": {"device": "cpu", "warmups": 1, "repetitions": 3, "threads": 1},
    "dense": {
        "kernels": ["naive", "sdpa"],
        "patterns": ["causal", "causal_document"],
        "seqlens": [64, 128],
        "heads": ["2-1"],
        "head_dim": 16,
        "dtype": "float32",
    },
}


@dataclass(frozen=True)
class Run:
    """What a Snakemake run came to."""

    code: int
    output: str

    @property
    def jobs(self) -> dict[str, int]:
        """Jobs of each rule that were run, or would be."""
        table = self.output.partition("\nJob stats:\n")[2].partition("\n\n")[0]
        counts = dict(re.findall(r"^(\w+) +(\d+)$", table, re.MULTILINE))
        return {rule: int(count) for rule, count in counts.items() if rule != "total"}

    def outputs(self, rule: str) -> set[str]:
        """Outputs of a rule's jobs."""
        return set(re.findall(rf"rule {rule}:\n(?:    .*\n)*?    output: (.*)", self.output))


class Workspace:
    """The pipeline's files in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def checkout(cls, repository: Path, folder: Path) -> "Workspace":
        """Copy what a run needs of the repository, and write the tiny study."""
        for name in CODE:
            source = repository / name
            if source.is_dir():
                shutil.copytree(
                    source, folder / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info")
                )
            else:
                shutil.copy2(source, folder / name)
        (folder / "tmp").mkdir()
        workspace = cls(folder)
        workspace.write_study(TINY)
        return workspace

    def copy(self, folder: Path) -> "Workspace":
        """The same state elsewhere, results and Snakemake's memory of them included."""
        shutil.copytree(self.folder, folder, dirs_exist_ok=True)
        return Workspace(folder)

    def write_study(self, study: dict[str, Any], name: str = "tiny.yaml") -> None:
        """Write a study's config file."""
        (self.folder / name).write_text(yaml.safe_dump(study, sort_keys=False))

    def command(self, *words: str, config: str | None = "tiny.yaml") -> list[str]:
        """A Snakemake command line with the local profile."""
        study = ["--configfile", config] if config else []
        return [sys.executable, "-m", "snakemake", *words, "--profile", "profiles/local", *study]

    @property
    def environment(self) -> dict[str, str]:
        """The workspace's own package comes before the installed one.

        Its own folder for temporary files, too: what is measured elsewhere on the machine is not waited for.
        """
        own = {
            "PYTHONPATH": str(self.folder / "workflow"),
            "TMPDIR": str(self.folder / "tmp"),
            "OMP_NUM_THREADS": "1",
        }
        return {**os.environ, **own}

    def start(self, *words: str, config: str | None = "tiny.yaml") -> subprocess.Popen[str]:
        """Start Snakemake in a session of its own."""
        return subprocess.Popen(
            self.command(*words, config=config),
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, *words: str, config: str | None = "tiny.yaml") -> Run:
        """Run Snakemake to its end."""
        process = self.start(*words, config=config)
        output, _ = process.communicate(timeout=600)
        return Run(process.returncode, output)

    def succeed(self, *words: str, config: str | None = "tiny.yaml") -> Run:
        """Run Snakemake, which must succeed."""
        run = self.run(*words, config=config)
        assert run.code == 0, run.output
        return run

    def succeed_bare(self, *words: str) -> Run:
        """Run Snakemake on the tiny study without a profile, which must succeed."""
        command = [sys.executable, "-m", "snakemake", *words, "--configfile", "tiny.yaml"]
        done = subprocess.run(command, cwd=self.folder, env=self.environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return Run(0, done.stdout + done.stderr)

    def result(self, name: str) -> Path:
        """A file of the tiny study's results."""
        return self.folder / "results" / "tiny" / name

    def records(self, series: str) -> list[dict[str, Any]]:
        """The records of a series, as `dense/auto/sdpa/causal/2-1`."""
        return read_lines(self.result(f"records/{series}.jsonl"))

    def edit(self, name: str, old: str, new: str) -> None:
        """Replace the one place where a file says `old`."""
        file = self.folder / name
        text = file.read_text()
        assert text.count(old) == 1, f"{name} says {old!r} {text.count(old)} times"
        file.write_text(text.replace(old, new))


def read_lines(file: Path) -> list[dict[str, Any]]:
    """The JSON objects of a file, one a line."""
    return [json.loads(line) for line in file.read_text().splitlines()]
