"""Advice where something was not measured: kernels, ranks, a cluster's GPU, or any that is ok; it is said in words."""

from pathlib import Path
from typing import Any

import pytest
from modelled_records import H200, rank_columns
from reporting_records import dense_study, record, sparse_study, write_records
from typer.testing import CliRunner

from longca.cases import Case, study_series
from longca.cli.main import app
from longca.data.histogram import Histogram, write_histogram
from longca.errors import LongcaError
from longca.masks.mask import draw_mask
from longca.measure.masks import case_mask
from longca.parallel.clusters import find_cluster
from longca.parallel.cost_model import KernelCost, Workload, predict
from longca.parallel.registry import SINGLE
from longca.parallel.topology import Topology
from longca.reporting.advice.advising import answers
from longca.reporting.advice.answer import Answer
from longca.reporting.advice.question import Question
from longca.reporting.collect import CaseRecord
from longca.reporting.long import Row, long_row
from longca.reporting.names import results_of
from longca.study.loading import check_study
from longca.study.masks import study_masks
from longca.study.model import Study
from longca.units import Heads

HEADS = Heads(8, 2)
CPU = {"device": "a CPU, 2 threads"}
RATE = KernelCost(400e12)
CLUSTER = find_cluster("h200_400g")


def study(
    dense: list[str] | None = None,
    ranks: list[str] | None = None,
    world_sizes: list[int] | None = None,
    **more: Any,
) -> Study:
    """A study of patterns of dense kernels, of patterns of mechanisms, or of both."""
    config: dict[str, Any] = {"study": "tiny", "measure": {"device": "cuda"}} | more
    if dense:
        config["dense"] = {
            "kernels": ["fa3", "segments"],
            "patterns": dense,
            "seqlens": [2048, 8192],
            "heads": ["8-2"],
        }
    if ranks:
        config["context_parallel"] = {
            "mechanisms": ["ulysses", "ring_p2p"],
            "kernels": ["segments"],
            "patterns": ranks,
            "world_sizes": world_sizes or [1, 2],
            "tokens_per_rank": [4096],
            "heads": ["8-2"],
        }
    return check_study(config, "test")


def columns(case: Case, area: float, digest: str, environment: dict[str, str]) -> dict[str, Any]:
    """A case as ranks of RATE on CLUSTER measure it."""
    ranks = case.arrangement
    mechanism, topology = (ranks.mechanism, ranks.topology) if ranks else (SINGLE, Topology())
    load = Workload(area, case.seqlen, case.q_heads, case.kv_heads, case.head_dim, 2, case.pass_)
    cost = predict(mechanism, topology, load, RATE, CLUSTER)
    found = rank_columns(cost)
    if not ranks:
        found = {"milliseconds": found["milliseconds"]}
    return found | {"area": area, "mask_digest": digest, "environment": environment}


def rows(one: Study, environment: dict[str, str] = H200, **status: dict[str, Any]) -> list[Row]:
    """Long rows of a study on masks of the defaults; `status` by kernel, on top of what it came to."""
    found = []
    for series in study_series(one):
        for case in series.cases:
            mask = draw_mask(case.pattern, case.seqlen, case.dataset, seed=one.seed)
            changed = columns(case, mask.area, mask.digest, environment)
            if case.kernel in status:
                kept = {"area", "mask_digest", "environment"}
                changed = {name: changed[name] for name in kept} | status[case.kernel]
            found.append(long_row(CaseRecord(case, Path("x.jsonl"), record(case, **changed))))
    return found


def asked(pattern: str = "causal", gpus: int | None = None, seqlen: int = 8192, **more: Any) -> Question:
    return Question(pattern, seqlen, more.pop("heads", HEADS), more.pop("pass_", "both"), gpus, **more)


def by_what(found: list[Answer]) -> dict[str, Answer]:
    return {one.what: one for one in found}


@pytest.mark.parametrize("pass_", ["forward", "backward", "both"])
@pytest.mark.parametrize("gpus", [2, 4, 8])
@pytest.mark.parametrize("dense", [None, ["full"]])
def test_what_was_measured_on_ranks_alone_is_answered_of_ranks(
    dense: list[str] | None, gpus: int, pass_: str
) -> None:
    found = by_what(
        list(answers(asked(gpus=gpus, pass_=pass_), rows(study(dense, ["causal"])), "results/tiny"))
    )
    kinds = ["mechanisms", "mechanisms, modelled"] if gpus == 2 else ["mechanisms, modelled"]
    assert list(found) == kinds
    modelled = found["mechanisms, modelled"]
    assert "the measured rate of segments" in modelled.notes[0]
    passes = ("forward", "backward") if pass_ == "both" else (pass_,)
    assert modelled_ms([modelled]) == pytest.approx(true_ms(8192 * 8193 / 2, 8192, gpus, passes), rel=1e-3)


def true_ms(area: float, seqlen: int, gpus: int, passes: tuple[str, ...], imbalance: float = 1.0) -> float:
    """Milliseconds of ulysses on the ranks that the records are of."""
    loads = [Workload(area, seqlen, 8, 2, 128, 2, pass_, imbalance) for pass_ in passes]
    return 1e3 * sum(predict("ulysses", Topology(gpus), load, RATE, CLUSTER).total_s for load in loads)


def test_both_are_answered_where_both_were_measured() -> None:
    one = study(["full", "causal"], ["causal"])
    assert [a.what for a in answers(asked(gpus=2), rows(one), "x")] == [
        "kernels",
        "mechanisms",
        "mechanisms, modelled",
    ]
    # What only dense kernels were measured on is modelled over their rate.
    assert [a.what for a in answers(asked("full", gpus=16), rows(one), "x")] == [
        "kernels",
        "mechanisms, modelled",
    ]


@pytest.mark.parametrize(
    ("one", "question", "said"),
    [
        (
            study(ranks=["causal"]),
            asked(),
            "--gpus: results/tiny has no kernel on one GPU, only mechanisms; right: --gpus, as 2, which was measured",
        ),
        (
            study(["full"], ["causal"]),
            asked("causl", gpus=4),
            "--pattern: 'causl' is not a pattern of results/tiny; did you mean 'causal'? allowed: causal, full",
        ),
        (
            study(ranks=["causal"]),
            asked(gpus=4, heads=Heads(64, 8)),
            "--heads: 64-8 was not measured in results/tiny; allowed: 8-2",
        ),
        (
            study(["full"], ["causal"]),
            asked("causal"),
            "--pattern: 'causal' is not a pattern of results/tiny; allowed: full",
        ),
    ],
)
def test_what_cannot_be_answered_names_the_option(one: Study, question: Question, said: str) -> None:
    with pytest.raises(LongcaError) as refused:
        list(answers(question, rows(one), "results/tiny"))
    assert str(refused.value) == said


@pytest.mark.parametrize("gpus", [None, 4])
def test_a_study_of_blocks_alone_is_named(gpus: int | None) -> None:
    sparse = [
        long_row(CaseRecord(case, Path("x.jsonl"), record(case)))
        for series in study_series(sparse_study())
        for case in series.cases
    ]
    with pytest.raises(LongcaError, match="--study: x has neither dense kernels nor mechanisms"):
        list(answers(asked(gpus=gpus), sparse, "x"))


STATUSES = ["out_of_memory", "unsupported", "timeout", "wrong", "crashed", "missing", "fallback"]


@pytest.mark.parametrize("status", STATUSES)
@pytest.mark.parametrize("pass_", ["forward", "backward", "both"])
def test_where_no_kernel_is_ok_each_one_says_why(status: str, pass_: str) -> None:
    failed = {"status": status, "reason": "no room"}
    found = rows(study(["causal"]), fa3=failed, segments=failed)
    (only,) = answers(asked(pass_=pass_, seqlen=4000), found, "results/tiny")
    assert {one.name for one in only.choices} == {"fa3", "segments"} and only.seqlen in (2048, 8192)
    passes = ("forward", "backward") if pass_ == "both" else (pass_,)
    for one in only.choices:
        assert one.ms is None
        assert one.why == "; ".join(f"{p}: {status.replace('_', ' ')}: no room" for p in passes)


@pytest.mark.parametrize("status", STATUSES)
def test_where_no_kernel_is_ok_nothing_is_modelled_and_it_says_why(status: str) -> None:
    failed = {"status": status, "reason": "no room"}
    told = answers(asked(gpus=8), rows(study(["causal"]), fa3=failed, segments=failed), "results/tiny")
    assert next(told).what == "kernels"
    with pytest.raises(LongcaError) as refused:
        next(told)
    word = f"{status.replace('_', ' ')}: no room"
    assert str(refused.value) == (
        "--gpus: results/tiny has nothing on 8 ranks, and nothing can be modelled: no kernel that ranks can run is ok "
        f"on causal in forward and backward; fa3: forward: {word}; backward: {word}; segments: forward: {word}; "
        f"backward: {word}"
    )


def test_a_kernel_that_lacks_a_pass_is_no_rate_for_both() -> None:
    found = rows(study(["causal"]), fa3={"status": "missing"})
    gone = [row for row in found if row["kernel"] != "segments" or row["pass"] == "forward"]
    with pytest.raises(LongcaError, match="segments: backward: not in the study's grid"):
        list(answers(asked(gpus=8), gone, "results/tiny"))
    assert [one.what for one in answers(asked(gpus=8, pass_="forward"), gone, "x")][
        -1
    ] == "mechanisms, modelled"


def test_ranks_that_all_failed_say_why() -> None:
    failed = {"status": "timeout", "reason": "after 4 minutes"}
    one = study(ranks=["causal"])
    found = list(answers(asked(gpus=2), rows(one, segments=failed), "results/tiny"))
    assert [a.what for a in found] == ["mechanisms"]
    for choice in found[0].choices:
        assert choice.ms is None
        assert choice.why == "forward: timeout: after 4 minutes; backward: timeout: after 4 minutes"
    assert "Nothing is modelled beside it: " in found[0].notes[-1]


def test_a_device_of_no_cluster_is_named_where_nothing_else_answers() -> None:
    one = study(["causal"], ["causal"])
    with pytest.raises(LongcaError, match="a CPU, 2 threads is the GPU of no cluster that is known"):
        list(answers(asked(gpus=8), rows(one, CPU), "results/tiny"))
    # What was measured on two ranks is told.
    found = list(answers(asked(gpus=2), rows(one, CPU), "results/tiny"))
    assert [a.what for a in found] == ["kernels", "mechanisms"]


def modelled_ms(found: list[Answer]) -> float:
    (ulysses,) = [one for one in found[-1].choices if one.name == "ulysses"]
    assert ulysses.ms is not None and found[-1].what == "mechanisms, modelled"
    return ulysses.ms


@pytest.mark.parametrize("window", [128, 1024])
@pytest.mark.parametrize("dense", [None, ["full_sliding_window", "full_document"]])
@pytest.mark.parametrize("pattern", ["full_sliding_window", "full_document"])
def test_what_is_modelled_is_of_the_studys_own_masks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pattern: str, dense: list[str] | None, window: int
) -> None:
    monkeypatch.chdir(tmp_path)
    one = study(dense, ["full_sliding_window", "full_document"], seed=7, mask={"window": window})
    write_histogram(Path("results/tiny/lengths/prolong512k.csv"), Histogram(((50, 50),), (1.0,), (3,)))
    found = []
    for series in study_series(one):
        for case in series.cases:
            mask = case_mask(one, results_of(one), case)
            changed = columns(case, mask.area, mask.digest, H200)
            found.append(long_row(CaseRecord(case, Path("x.jsonl"), record(case, **changed))))
    masks = study_masks(one, results_of(one))
    told = list(answers(asked(pattern, gpus=4, seqlen=2**17, pass_="forward"), found, "x", masks.draw))
    # Of documents as mechanisms were measured on, whatever kernels beside them were.
    dataset = "prolong512k_long" if pattern == "full_document" else "auto"
    area = masks.draw(pattern, 2**17, dataset).area
    assert modelled_ms(told) == pytest.approx(true_ms(area, 2**17, 4, ("forward",), 1.03), rel=1e-3)
    # Its records alone do not say how its masks are drawn; that defaults draw others is seen.
    alone = answers(asked(pattern, gpus=4, seqlen=2**17, pass_="forward"), found, "results/tiny")
    if (pattern, window) == ("full_sliding_window", 1024):
        assert modelled_ms(list(alone)) == modelled_ms(told)
    else:
        said = f"results/tiny was measured on other masks of {pattern} than the defaults draw"
        with pytest.raises(LongcaError, match=said):
            list(alone)


def test_the_command_answers_a_study_of_ranks_from_its_folder_and_config(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    one = study(ranks=["causal"], mask={"window": 128})

    def measured(case: Case) -> dict[str, Any]:
        mask = draw_mask(case.pattern, case.seqlen, case.dataset)
        return columns(case, mask.area, mask.digest, H200)

    write_records(one, measured)
    config = Path("tiny.yaml")
    config.write_text(
        "study: tiny\nmask: {window: 128}\ncontext_parallel:\n  mechanisms: [ulysses, ring_p2p]\n"
        "  kernels: [segments]\n  patterns: [causal]\n  world_sizes: [1, 2]\n  tokens_per_rank: [4096]\n"
        "  heads: [8-2]\n"
    )
    words = ["advise", "--pattern", "causal", "--seqlen", "8k", "--heads", "8-2", "--gpus", "2", "--study"]
    told = [CliRunner().invoke(app, [*words, source]) for source in ("results/tiny", "tiny.yaml")]
    assert [done.exit_code for done in told] == [0, 0], told[0].exception
    for done in told:
        assert "Mechanisms for causal over 2 GPUs, 8192 tokens" in done.output
        assert "Mechanisms, modelled for causal over 2 GPUs" in done.output and "Kernels" not in done.output


def test_the_command_says_why_no_kernel_is_ok(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_records(dense_study(), lambda case: {"status": "out_of_memory", "reason": "64 GiB asked"})
    words = ["advise", "--pattern", "causal", "--seqlen", "1k", "--heads", "4-2", "--study", "results/tiny"]
    words += ["--pass", "forward"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0
    assert done.output.count("forward: out of memory: 64 GiB asked") == 2
    refused = CliRunner().invoke(app, [*words, "--gpus", "8"])
    assert isinstance(refused.exception, LongcaError)
    assert "Kernels for causal, 1024 tokens" in refused.output


def test_gpus_of_a_host_are_asked_for_with_gpus_alone() -> None:
    words = [
        "advise",
        "--pattern",
        "causal",
        "--seqlen",
        "1k",
        "--study",
        "results/tiny",
        "--gpus-per-node",
        "4",
    ]
    done = CliRunner().invoke(app, words)
    assert isinstance(done.exception, LongcaError)
    assert str(done.exception) == "--gpus-per-node: is of several GPUs; right: with --gpus"


def test_ceilings_are_of_a_study_with_a_dense_grid(tmp_path: Path) -> None:
    study = tmp_path / "sparse.yaml"
    study.write_text(
        "study: tiny\nsparse: {kernels: [flex], patterns: [uniform_block], seqlens: [256], heads: [4-2],"
        " blocks: {uniform_block: [64]}, densities: [0.5]}\n"
    )
    done = CliRunner().invoke(app, ["ceilings", "--study", str(study)])
    assert isinstance(done.exception, LongcaError) and "has no dense grid" in str(done.exception)
