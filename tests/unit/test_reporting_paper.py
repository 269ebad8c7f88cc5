"""The paper's whole grid: all its tables and figures, in under 2 GiB."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from longca.reporting.names import (
    FIGURE_FORMATS,
    TABLE_FORMATS,
    figure_file,
    figure_names,
    figures_of,
    results_of,
    table_file,
    table_names,
)
from longca.study.loading import read_study


def test_tables_and_figures_of_the_papers_grid(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    config, program = repository / "config/paper.yaml", Path(__file__).with_name("reporting_paper.py")
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parent)}
    answer = subprocess.run(
        [sys.executable, str(program), str(config)],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert answer.returncode == 0, answer.stderr
    print(answer.stdout)
    used = json.loads(answer.stdout)
    study = read_study(config)
    made = {file.name for folder in ("tables", "figures") for file in (results_of(study) / folder).iterdir()}
    assert made == {
        *(f"{name}.{suffix}" for name in table_names(study) for suffix in TABLE_FORMATS),
        *(f"{name}.{suffix}" for name in figure_names(study) for suffix in FIGURE_FORMATS),
    }
    # What a menu leaves out of sight is there to be chosen.
    for kind in figures_of(study):
        if kind.name.startswith("sparse_"):
            drawn = json.loads(figure_file(study, kind.name, "json").read_text())
            (values,) = drawn["datasets"].values()
            assert len(values) == pq.ParquetFile(table_file(study, "sparse", "parquet")).metadata.num_rows
    assert used["bytes"] < 2 * 2**30, used
