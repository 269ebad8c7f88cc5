"""Benchmarks need a GPU to run, but each imports everywhere, and what it takes from another is there."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton")


def test_every_benchmark_imports(repository: Path) -> None:
    names = sorted(file.stem for file in (repository / "benchmarks").glob("*.py"))
    program = "; ".join(f"import {name}" for name in names)
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=repository / "benchmarks", capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
