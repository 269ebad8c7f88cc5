"""The commands of the reporting stage as a person types them, and what a Snakefile asks at every start."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from reporting_records import by_kernel, dense_study, sparse_study, write_records

from longca.reporting.names import figure_names, table_names

CONFIG = dense_study().model_dump(mode="json", exclude_defaults=True)


def longca(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a folder with the study's config file."""
    (folder / "tiny.yaml").write_text(yaml.safe_dump(CONFIG))
    program = "import sys; from longca.cli.main import main; sys.exit(main())"
    return subprocess.run(
        [sys.executable, "-c", program, *arguments], cwd=folder, capture_output=True, text=True
    )


def test_tables_figures_and_report_by_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_records(dense_study(), by_kernel(naive=None))
    refused = longca(tmp_path, "tables", "dense", "--study", "tiny.yaml")
    assert refused.returncode == 2
    assert refused.stderr.startswith(
        "longca: error: results/tiny/records/dense/auto/naive/full/4-2.jsonl: is not there"
    )
    assert "Traceback" not in refused.stderr
    assert not Path("results/tiny/tables").exists()
    assert longca(tmp_path, "tables", "dense", "--study", "tiny.yaml", "--partial").returncode == 0
    assert {file.name for file in Path("results/tiny/tables").iterdir()} == {
        f"dense.{suffix}" for suffix in ("csv", "parquet", "md", "tex")
    }
    assert longca(tmp_path, "figures", "peak_memory", "--study", "tiny.yaml").returncode == 0
    assert {file.name for file in Path("results/tiny/figures").iterdir()} == {
        f"peak_memory.{suffix}" for suffix in ("html", "svg", "pdf", "column.svg", "column.pdf", "json")
    }
    early = longca(tmp_path, "report", "--study", "tiny.yaml")
    assert early.returncode == 2
    assert early.stderr.startswith("longca: error: results/tiny/tables/support.parquet: is not there")


def test_a_study_has_the_tables_and_figures_of_its_grids() -> None:
    assert table_names(dense_study()) == ("dense", "support", "verification")
    assert table_names(sparse_study()) == ("sparse", "support", "verification")
    both = dense_study().model_copy(update={"sparse": sparse_study().sparse})
    assert table_names(both) == ("dense", "sparse", "support", "verification")
    assert figure_names(both) == (
        "dense_throughput_over_length",
        "dense_throughput_over_patterns",
        "peak_memory",
        "sparse_throughput_over_density",
        "sparse_speedup_over_density",
        "sparse_peak_memory",
        "roofline",
        "sample_spread",
        "support",
        "masks",
    )


def test_naming_them_needs_no_heavy_library() -> None:
    program = (
        "import sys, longca.reporting.names; "
        "print(sorted({'pandas', 'altair', 'pyarrow', 'torch', 'vl_convert'} & set(sys.modules)))"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"
