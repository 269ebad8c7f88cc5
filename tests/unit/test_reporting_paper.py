"""The paper's whole grid: all its tables and figures, in under 2 GiB."""

import json
import os
import subprocess
import sys
from pathlib import Path

from longca.reporting.names import FIGURE_FORMATS, TABLE_FORMATS, figure_names, table_names
from longca.study.loading import read_study


def test_tables_and_figures_of_the_papers_grid(repository: Path, tmp_path: Path) -> None:
    config, program = repository / "config/paper.yaml", Path(__file__).with_name("reporting_paper.py")
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parent)}
    answer = subprocess.run(
        [sys.executable, str(program), str(config)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert answer.returncode == 0, answer.stderr
    used = json.loads(answer.stdout)
    study = read_study(config)
    made = {
        file.name
        for folder in ("tables", "figures")
        for file in (tmp_path / "results/paper" / folder).iterdir()
    }
    assert made == {
        *(f"{name}.{suffix}" for name in table_names(study) for suffix in TABLE_FORMATS),
        *(f"{name}.{suffix}" for name in figure_names(study) for suffix in FIGURE_FORMATS),
    }
    assert used["bytes"] < 2 * 2**30, used
