"""`longca advise` and `longca project` asked the same say the same; passes in a row have one topology."""

import re
from pathlib import Path
from typing import Any

import pytest
from modelled_records import rank_columns
from reporting_records import write_records
from typer.testing import CliRunner

from longca.cases import Case, study_series
from longca.cli.main import app
from longca.measure.masks import case_mask
from longca.parallel.clusters import find_cluster
from longca.parallel.cost_model import KernelCost, Workload, predict
from longca.parallel.registry import MECHANISMS, SINGLE
from longca.parallel.topology import Topology
from longca.reporting.advice.advising import answers
from longca.reporting.advice.question import Question
from longca.reporting.collect import CaseRecord
from longca.reporting.long import long_row
from longca.reporting.names import results_of
from longca.reporting.scale.areas import Areas
from longca.reporting.scale.projection import topologies
from longca.study.loading import read_study
from longca.study.masks import study_masks
from longca.study.model import Study
from longca.units import Heads

CONFIG = Path("tiny.yaml")
H200 = find_cluster("h200_400g")
# A constant a call in the backward: it wants fewer steps of a ring than the forward.
RATES = {"forward": KernelCost(500e12), "backward": KernelCost(450e12, 100e-6)}
FRICTION = {"ulysses": 1.3, "ring_p2p": 1.05, "ring_allgather": 0.97}


@pytest.fixture
def measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Study:
    """Ranks on two datasets, kernels alone on a third; a pattern that only kernels were measured on."""
    monkeypatch.chdir(tmp_path)
    CONFIG.write_text(
        """
study: tiny
measure: {device: cuda}
dense:
  kernels: [segments]
  patterns: [causal_document, causal, full_document]
  seqlens: [8k, 64k]
  heads: [64-8]
  datasets: [pile]
context_parallel:
  mechanisms: [ulysses, ring_p2p, ring_allgather]
  kernels: [segments]
  patterns: [causal_document, full]
  world_sizes: [1, 2]
  tokens_per_rank: [8k, 32k]
  heads: [64-8]
  datasets: [prolong64k, prolong512k]
""",
        encoding="utf-8",
    )
    one = read_study(CONFIG)
    write_records(one, lambda case: record_of(one, case))
    return one


def record_of(one: Study, case: Case) -> dict[str, Any]:
    mask, ranks = case_mask(one, results_of(one), case), case.arrangement
    mechanism, topology = (ranks.mechanism, ranks.topology) if ranks else (SINGLE, Topology())
    load = Workload(mask.area, case.seqlen, case.q_heads, case.kv_heads, case.head_dim, 2, case.pass_)
    cost = predict(mechanism, topology, load, RATES[case.pass_], H200)
    columns = rank_columns(cost, FRICTION.get(mechanism, 1.0))
    if not ranks:
        columns = {name: columns[name] for name in ("milliseconds", "environment")}
    return columns | {"area": mask.area, "mask_digest": mask.digest}


def output(*words: str) -> str:
    done = CliRunner().invoke(app, list(words))
    assert done.exit_code == 0, (done.output, done.exception)
    return done.output


def table(text: str, first: str) -> dict[str, list[str]]:
    """The cells of the last table whose header begins with a word, by their first."""
    lines = [re.split(r" {2,}", line.strip()) for line in text.splitlines()]
    start = max(number for number, line in enumerate(lines) if line[0] == first)
    return {line[0]: line[1:] for line in lines[start + 1 :] if line[0] in MECHANISMS}


@pytest.mark.parametrize("source", ["results/tiny", "tiny.yaml"])
@pytest.mark.parametrize("pattern", ["causal_document", "full"])
@pytest.mark.parametrize(("gpus", "tokens"), [(4, 8192), (16, 4096), (64, 1024)])
@pytest.mark.parametrize("pass_", ["forward", "backward"])
def test_both_give_the_same_throughput_on_the_same_documents_over_the_same_kernel(
    measured: Study, pass_: str, gpus: int, tokens: int, pattern: str, source: str
) -> None:
    common = ["--pattern", pattern, "--gpus", str(gpus), "--heads", "64-8"]
    projected = output("project", *common, "--tokens", str(tokens), "--study", "tiny.yaml")
    advised = output("advise", *common, "--seqlen", str(tokens * gpus), "--pass", pass_, "--study", source)
    column = 1 if pass_ == "forward" else 4
    mine = {name: cells[1] for name, cells in table(advised, "Name").items()}
    theirs = {name: cells[column] for name, cells in table(projected, "Mechanism").items()}
    assert mine == theirs and sum(value != "–" for value in mine.values()) >= 4
    # Of two datasets the first by name, whatever kernels alone were measured on.
    for text in (projected, advised[advised.index("Mechanisms, modelled") :]):
        assert ("documents of prolong512k" in text) is (pattern == "causal_document")
        assert "segments" in text and "pile" not in text


def test_kernels_say_which_documents_they_were_measured_on(measured: Study) -> None:
    words = [
        "advise",
        "--pattern",
        "causal_document",
        "--seqlen",
        "16k",
        "--gpus",
        "2",
        "--study",
        "tiny.yaml",
    ]
    said = output(*words)
    assert "Measured on documents of pile." in said
    assert "Measured over segments, on documents of prolong512k." in said


def test_what_no_rank_ran_is_modelled_with_the_friction_of_the_ranks(measured: Study) -> None:
    rows = [
        long_row(CaseRecord(case, CONFIG, record(measured, case)))
        for series in study_series(measured)
        for case in series.cases
    ]
    draw = study_masks(measured, results_of(measured)).draw
    question = Question("causal", 65536, Heads(64, 8), "forward", 8)
    found = {one.name: one for one in list(answers(question, rows, "x", draw))[-1].choices}
    load = Workload(65536 * 65537 / 2, 65536, 64, 8, 128, 2, "forward")
    for name, friction in FRICTION.items():
        topology = Topology(8) if name == "ulysses" else Topology(ring=8)
        cost = predict(name, topology, load, RATES["forward"], H200)
        expected = max(cost.total_s * friction, cost.computation_s) * 1e3
        assert found[name].ms == pytest.approx(expected, rel=1e-3), name


def record(one: Study, case: Case) -> Any:
    from reporting_records import record as plain

    return plain(case, **record_of(one, case))


@pytest.mark.parametrize("gpus", [16, 64])
def test_passes_in_a_row_run_on_one_topology_that_takes_the_least_together(
    measured: Study, gpus: int
) -> None:
    rows = [
        long_row(CaseRecord(case, CONFIG, record(measured, case)))
        for series in study_series(measured)
        for case in series.cases
    ]
    draw = study_masks(measured, results_of(measured)).draw
    seqlen, passes = 4096 * gpus, ("forward", "backward")
    told = {
        pass_: {
            one.name: one
            for one in list(
                answers(Question("causal_document", seqlen, Heads(64, 8), pass_, gpus), rows, "x", draw)
            )[-1].choices
        }
        for pass_ in (*passes, "both")
    }
    area, apart = Areas(draw, rows).of("causal_document", "prolong512k", seqlen), False
    for name in ("usp", "loongtrain"):
        sums = {}
        for topology in topologies(name, gpus):
            if 64 % topology.ulysses == 0:
                loads = [Workload(area, seqlen, 64, 8, 128, 2, pass_, 1.03) for pass_ in passes]
                costs = [predict(name, topology, load, RATES[load.pass_], H200) for load in loads]
                # Its friction was not measured: the median of those that were.
                sums[topology] = sum(max(cost.computation_s, 1.05 * cost.total_s) for cost in costs)
        best = min(sums, key=lambda topology: sums[topology])
        both = told["both"][name]
        assert both.ms == pytest.approx(1e3 * sums[best], rel=1e-3)
        assert both.why.count("heads over") == 1
        assert f"heads over {best.ulysses}, sequence over {best.ring}" in both.why
        alone = [told[pass_][name] for pass_ in passes]
        assert both.ms is not None and both.ms >= sum(one.ms or 0.0 for one in alone) * (1 - 1e-9)
        apart |= both.ms > 1.001 * sum(one.ms or 0.0 for one in alone)
    # Somewhere the passes by themselves would want two.
    assert apart


def test_project_says_that_its_passes_stand_by_themselves(measured: Study) -> None:
    said = output("project", "--pattern", "full", "--gpus", "16", "--study", "tiny.yaml")
    assert "Each pass stands by itself, on its own best topology; one for both: longca advise." in said
