"""`longca schema` and `longca plan`."""

import json
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from longca.cli.main import app
from longca.study.reference import key_table, study_schema


def say(*words: str) -> str:
    """What a command prints; it must succeed."""
    result = CliRunner().invoke(app, list(words), catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


def test_schema_prints_the_schema_or_the_table_of_keys() -> None:
    assert json.loads(say("schema")) == study_schema()
    assert say("schema", "--format", "markdown") == key_table()


def test_plan_counts_the_default_study(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # nothing was measured here
    said = say("plan", "--study", str(repository / "config" / "smoke.yaml"))
    rows = {tuple(line.split()[:4]) for line in said.splitlines()}
    # 12 patterns; 3 lengths, flex 1; 2 passes.
    assert ("dense", "naive", "12", "72") in rows
    assert ("dense", "flex", "12", "24") in rows
    assert "Assumed where nothing was measured" in said


def test_plan_counts_the_arrangements_of_context_parallelism(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    grid = {"kernels": ["segments"], "patterns": ["full"], "heads": ["8-8"]}
    parallel = {"mechanisms": "all", "world_sizes": [1, 8], "tokens_per_rank": ["8k"], **grid}
    parallel["topologies"] = {"usp": ["2x4", "4x2"], "loongtrain": ["1x8x2"]}
    study = {"study": "tiny", "measure": {"device": "cpu"}, "context_parallel": parallel}
    Path("tiny.yaml").write_text(yaml.safe_dump(study))
    (row,) = [line.split() for line in say("plan", "--study", "tiny.yaml").splitlines() if "segments" in line]
    # One rank alone, five mechanisms on eight; usp in two arrangements; two passes each.
    assert row[:4] == ["context_parallel", "segments", "6", "14"]


def test_plan_takes_measured_latencies_in_place_of_assumed_rates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    dense = {"kernels": ["sdpa"], "patterns": ["full"], "seqlens": [64], "heads": ["2-1"], "dtype": "float32"}
    study = {"study": "tiny", "measure": {"device": "cpu"}, "dense": {**dense, "head_dim": 16}}
    Path("tiny.yaml").write_text(yaml.safe_dump(study))
    record = {
        "kernel": "sdpa", "family": "dense", "dataset": "auto", "dataset_resolved": None, "pattern": "full",
        "seqlen": 64, "sample": 0, "q_heads": 2, "kv_heads": 1, "head_dim": 16, "dtype": "float32", "pass": "forward",
        "status": "ok", "latency_ms": {"p20": 3.6e6, "p50": 3.6e6, "p80": 3.6e6}, "samples_ms": [3.6e6],
        "tflops": 1.45636e-10, "area": 4096, "density": 1.0, "peak_memory_bytes": 0, "prepare_ms": 0.0,
        "compile_ms": 0.0, "relative_error": {"out": 1e-7, "dq": 1e-7, "dk": 1e-7, "dv": 1e-7}, "mask_digest": "m",
        "fingerprint": "f", "environment": {}, "measured_at": "2026-01-01T00:00:00+00:00",
    }  # fmt: skip
    records = Path("results/tiny/records/dense/auto/sdpa/full/2-1.jsonl")
    records.parent.mkdir(parents=True)
    records.write_text(json.dumps(record) + "\n")
    (row,) = [line.split() for line in say("plan", "--study", "tiny.yaml").splitlines() if "sdpa" in line]
    # 3 warm-ups, 20 repetitions and 3 calls besides, an hour each.
    assert row == ["dense", "sdpa", "1", "2", "0", "1", "26.00", "1560.1"]
