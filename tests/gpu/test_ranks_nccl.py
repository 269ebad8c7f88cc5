"""Ranks over NCCL: every mechanism, measured and verified on the GPUs of this machine."""

import pytest
import torch
from rich.console import Console

from longca.cases import study_series
from longca.measure.budget import NO_LIMIT
from longca.measure.record import read_records
from longca.measure.world.running import measure_on_ranks
from longca.study.loading import check_study

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("ranks", [1, 2])
def test_every_mechanism_is_right_on_gpus(ranks, tmp_path):
    if torch.cuda.device_count() < ranks:
        pytest.skip(f"{torch.cuda.device_count()} GPUs")
    grid = {
        "mechanisms": "all",
        "kernels": ["segments"],
        "patterns": ["causal", "full_document", "global_sliding"],
        "world_sizes": [ranks],
        "tokens_per_rank": [1024],
        "heads": ["8-2"],
        "topologies": {"usp": [f"1x{ranks}"], "loongtrain": [f"1x{ranks}x{ranks}"]} if ranks > 1 else {},
        "head_chunks": [1],
    }
    sampling = {"device": "cuda", "warmups": 1, "repetitions": 5, "case_timeout": "2m"}
    one = check_study({"study": "tiny", "measure": sampling, "context_parallel": grid}, "test")
    series = study_series(one)
    measure_on_ranks(one, tmp_path, series, NO_LIMIT, frozenset(), Console(quiet=True), None)
    records = [record for s in series for record in read_records(tmp_path / "records" / f"{s.name}.jsonl")]
    assert [(r.mechanism, r.pattern, r.pass_, r.status, r.reason) for r in records if r.status != "ok"] == []
    assert {record.environment["network"] for record in records} == {"nccl"}
    assert all((record.communication_ms or 0) > 0 for record in records if ranks > 1)
    if ranks > 1 and torch.cuda.can_device_access_peer(0, 1):
        assert all(", copies, " in record.backend for record in records)
