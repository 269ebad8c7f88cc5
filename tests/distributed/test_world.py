"""`longca measure` over real ranks: what fails on one of them is the status of its case, and the next case runs."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from local_kernels import write_package
from rich.console import Console

from longca import closure
from longca.cases import study_series
from longca.errors import LongcaError
from longca.kernels import fingerprint, registry
from longca.masks.mask import draw_mask
from longca.measure.budget import NO_LIMIT
from longca.measure.record import read_records
from longca.measure.world.membership import Membership, find_membership
from longca.measure.world.running import check_world, measure_on_ranks
from longca.parallel.topology import Topology
from longca.parallel.volume import sent_bytes
from longca.study.loading import check_study

CACHES = (
    registry._modules,
    closure.closure_digest,
    closure._find,
    closure._read,
    fingerprint.source_fingerprint,
)


@pytest.fixture(scope="session")
def package(tmp_path_factory):
    site = tmp_path_factory.mktemp("site")
    write_package(site)
    return site


@pytest.fixture(autouse=True)
def kernels(package, monkeypatch):
    """The package on the path of this process and of its ranks."""
    monkeypatch.syspath_prepend(package)
    monkeypatch.setenv("PYTHONPATH", str(package))
    for one in CACHES:
        one.cache_clear()
    yield package
    for one in CACHES:
        one.cache_clear()
    for name in [name for name in sys.modules if name.startswith("fake_local")]:
        del sys.modules[name]


def study(kernel="right", measure=None, **grid):
    config = {
        "mechanisms": ["ring_p2p"],
        "kernels": [kernel],
        "patterns": ["causal"],
        "world_sizes": [2],
        "tokens_per_rank": [32, 64, 96],
        "heads": ["4-2"],
        "head_dim": 32,
        "dtype": "float32",
        "shardings": ["zigzag"],
    }
    sampling = {"device": "cpu", "warmups": 1, "repetitions": 3, "threads": 1, **(measure or {})}
    return check_study({"study": "tiny", "measure": sampling, "context_parallel": config | grid}, "test")


def measured(one, results):
    """The records of a study's series, in their order."""
    series = study_series(one)
    measure_on_ranks(one, results, series, NO_LIMIT, frozenset(), Console(quiet=True), None)
    return [record for s in series for record in read_records(results / "records" / f"{s.name}.jsonl")]


def test_every_number_of_every_mechanism(tmp_path):
    one = study(
        mechanisms="all", patterns=["full", "causal_document"], world_sizes=[1, 2], tokens_per_rank=[64]
    )
    records = measured(one, tmp_path)
    assert {record.status for record in records} == {"ok"}
    by_mechanism = {}
    for record in records:
        by_mechanism.setdefault(record.mechanism, []).append(record)
        assert set(record.relative_error) == {"out", "dq", "dk", "dv"}
        assert max(record.relative_error.values()) < 1e-5
        spread = record.rank_latency_ms
        assert 0 < spread.min <= spread.mean <= spread.max
        assert record.tflops * record.latency_ms.p50 * 1e9 * record.world_size == pytest.approx(
            (4 if record.pass_ == "forward" else 10) * record.area * 4 * 32, rel=1e-5
        )
        assert record.imbalance >= 1 and record.computation_ms > 0
        assert record.seqlen == 64 * record.world_size
    assert list(by_mechanism) == ["single", "ulysses", "ring_p2p", "ring_allgather", "usp", "loongtrain"]
    assert all(r.communication_bytes == r.communication_ms == 0 for r in by_mechanism["single"])
    for pass_ in ("forward", "backward"):
        full = {
            r.mechanism: r for r in records if r.pattern == "full" and r.pass_ == pass_ and r.world_size == 2
        }
        for mechanism, topology in (("ulysses", Topology(2)), ("ring_p2p", Topology(ring=2))):
            assert full[mechanism].communication_bytes == sent_bytes(topology, 64, 4, 2, 32, 4, pass_)
    # On two ranks U fills the node: these are Ulysses, and say so.
    for record in by_mechanism["usp"] + by_mechanism["loongtrain"]:
        assert "degenerate" in record.flags and record.backend.startswith("ulysses, ")
    assert not any("degenerate" in record.flags for record in by_mechanism["ring_p2p"])


@pytest.mark.parametrize(
    ("kernel", "status", "reason", "pass_"),
    [
        ("exits", "crashed", "rank 1 ended with exit code 3: the end of it", "forward"),
        ("hangs", "timeout", "within 20 s", "forward"),
        ("memory", "out_of_memory", "rank 1: no more memory", "forward"),
        ("says_no", "unsupported", "not this part of the mask", "forward"),
        ("wrong", "wrong", "dk errs by", "forward"),
    ],
)
def test_what_fails_on_one_rank_is_the_status_of_that_case(kernel, status, reason, pass_, tmp_path):
    timeout = {"case_timeout": "20s"} if kernel == "hangs" else {}
    before, at, after = measured(study(kernel, timeout, passes=[pass_]), tmp_path)
    assert (before.status, at.status, after.status) == ("ok", status, "ok")
    assert reason in at.reason
    assert at.tflops is at.rank_latency_ms is at.communication_bytes is at.imbalance is None
    assert at.area == draw_mask("causal", 128).area and at.environment["device"]


def test_what_is_wrong_in_one_pass_spoils_both(tmp_path):
    first, second = measured(study("wrong", tokens_per_rank=[64]), tmp_path)
    for record in (first, second):
        assert record.status == "wrong" and record.reason.startswith("dk errs by")
        assert record.relative_error["out"] < 1e-5 < 5e-3 < record.relative_error["dk"]


def test_a_library_that_is_not_there_is_missing(tmp_path):
    (record,) = measured(study("absent", tokens_per_rank=[32], passes=["forward"]), tmp_path)
    assert record.status == "missing" and "no_such_library" in record.reason


def test_heads_that_do_not_divide_are_unsupported(tmp_path):
    one = study(mechanisms=["ulysses", "ring_p2p"], world_sizes=[3], tokens_per_rank=[16], passes=["forward"])
    ulysses, ring = measured(one, tmp_path)
    assert (ulysses.status, ring.status) == ("unsupported", "ok")
    assert ulysses.reason == "4 query heads do not divide over 3 Ulysses ranks"


def test_chunks_that_do_not_divide_are_unsupported_and_more_threads_than_cores_are_told(tmp_path):
    one = study(
        measure={"threads": 64},
        mechanisms=["ulysses"],
        tokens_per_rank=[16],
        passes=["forward"],
        head_chunks=[1, 3],
    )
    whole, chunked = measured(one, tmp_path)
    assert whole.status == "ok" and "oversubscribed" in whole.flags
    assert chunked.status == "unsupported" and "must divide the 1 KV heads of a rank" in chunked.reason


def test_a_finished_series_is_kept_and_starts_no_rank(tmp_path):
    one = study(tokens_per_rank=[32])
    first = measured(one, tmp_path)
    assert measured(one, tmp_path) == first
    lines = (tmp_path / "jobs" / f"{study_series(one)[0].name}.jsonl").read_text().splitlines()
    assert [json.loads(line)["kept_cases"] for line in lines] == [0, 2]


CONFIG = """
study: tiny
measure: {device: cpu, warmups: 1, repetitions: 3, threads: 1}
context_parallel:
  mechanisms: [ring_p2p]
  kernels: [exits]
  patterns: [causal]
  world_sizes: [3]
  tokens_per_rank: [32, 64, 96]
  heads: [4-2]
  head_dim: 32
  dtype: float32
  passes: [forward]
  shardings: [zigzag]
"""


def start(folder: Path, environment: dict[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "longca", "measure", "--study", "study.yaml"],
        cwd=folder,
        env={**os.environ, "GLOO_SOCKET_IFNAME": "lo", "TMPDIR": str(folder), **environment},
        stderr=subprocess.PIPE,
        text=True,
    )


def torchrun(rank: int, size: int, port: int) -> dict[str, str]:
    here = {"RANK": rank, "WORLD_SIZE": size, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": size}
    return {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), **{k: str(v) for k, v in here.items()}}


def free_port() -> int:
    import socket

    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def test_a_world_that_a_launcher_started_is_joined_and_outlives_a_rank(tmp_path):
    (tmp_path / "study.yaml").write_text(CONFIG)
    port = free_port()
    ranks = [start(tmp_path, torchrun(rank, 3, port - 1)) for rank in range(3)]
    said = [rank.communicate(timeout=240)[1] for rank in ranks]
    assert [rank.returncode for rank in ranks] == [0, 0, 0], said
    (file,) = (tmp_path / "results/tiny/records").rglob("*.jsonl")
    before, at, after = read_records(file)
    assert (before.status, at.status, after.status) == ("ok", "crashed", "ok")
    assert at.reason == "rank 1 ended with exit code 3: the end of it"
    assert before.world_size == 3 and before.environment["ranks_per_host"] == 3


def test_a_world_of_another_size_is_refused_on_every_rank_before_anything_is_measured(tmp_path):
    (tmp_path / "study.yaml").write_text(CONFIG)
    ranks = [start(tmp_path, torchrun(rank, 2, 1)) for rank in range(2)]
    for rank in ranks:
        said = rank.communicate(timeout=120)[1]
        assert rank.returncode == 2
        assert "is for 3 ranks, and torchrun started 2; right: --only world_size=2" in said
    assert not (tmp_path / "results").exists()


def test_a_kernel_of_one_process_is_refused_in_a_world():
    dense = {"kernels": ["naive"], "patterns": ["full"], "seqlens": [64], "heads": ["2-1"]}
    one = check_study({"study": "tiny", "dense": dense}, "test")
    here = find_membership(torchrun(0, 2, 1))
    with pytest.raises(LongcaError, match="one process, and torchrun started 2"):
        check_world(study_series(one), here)
    check_world(study_series(one), None)


SLURM = {
    "SLURM_PROCID": "5",
    "SLURM_STEP_NUM_TASKS": "7",
    "SLURM_LOCALID": "1",
    "SLURM_NODEID": "1",
    "SLURM_STEP_TASKS_PER_NODE": "4,3",
    "SLURM_STEP_NODELIST": "alpha",
    "SLURM_JOB_ID": "12",
    "SLURM_STEP_ID": "1",
}


def test_slurms_variables_say_who_a_rank_is():
    assert find_membership(SLURM) == Membership(5, 7, 1, 3, "alpha", 20000 + 85, "slurm")
    assert find_membership(SLURM | {"MASTER_ADDR": "beta"}).host == "beta"
    # A batch script, and a step of one task, are no world; nor is nothing at all.
    assert find_membership({"SLURM_PROCID": "0", "SLURM_NTASKS": "8"}) is None
    assert find_membership(SLURM | {"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "1"}) is None
    assert find_membership({}) is None


@pytest.mark.parametrize(
    ("environment", "says"),
    [
        ({"RANK": "x", "WORLD_SIZE": "2"}, "RANK=x: is no whole number"),
        ({"RANK": "2", "WORLD_SIZE": "2"}, "torchrun says rank 2 of 2"),
        (SLURM | {"SLURM_LOCALID": ""}, "SLURM_LOCALID=: is no whole number"),
    ],
)
def test_variables_that_make_no_sense_are_named(environment, says):
    with pytest.raises(LongcaError, match=says):
        find_membership(environment)
