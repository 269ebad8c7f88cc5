"""No modelled pass takes less than its computation, and mechanisms nearer than the model's error have no winner."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from reporting_records import write_records
from test_project_command import H200, RATES, printed, study, true_record
from test_project_command import asked as project_words

from longca.cases import Case
from longca.parallel.cost_model import Cost, KernelCost
from longca.parallel.registry import MECHANISMS
from longca.reporting.long import read_rows
from longca.reporting.names import table_file
from longca.reporting.parts.part import ReportData
from longca.reporting.parts.scale import scale
from longca.reporting.scale.areas import Areas
from longca.reporting.scale.fit import Fit
from longca.reporting.scale.projection import Question, project
from longca.reporting.scale.sections import scale_findings
from longca.reporting.tables import write_table
from longca.study.masks import DEFAULT_MASKS

FRICTIONS = (0.2, 0.9, 0.9999, 1.0, 1.1)


@pytest.mark.parametrize("friction", FRICTIONS)
@pytest.mark.parametrize("exposed", [0.0, 1e-9, 0.05, 3.0])
def test_friction_takes_nothing_from_the_computation(friction: float, exposed: float) -> None:
    rubbed = Fit(H200, {}, {"ulysses": friction}).rubbed("ulysses", Cost(1.0, exposed, 1.0 + exposed))
    assert rubbed.exposed_s >= 0 and rubbed.efficiency <= 1
    assert rubbed.total_s == pytest.approx(max(1.0, (1 + exposed) * friction))


@pytest.mark.parametrize("friction", FRICTIONS)
@pytest.mark.parametrize("pass_", ["forward", "backward"])
@pytest.mark.parametrize("tokens", [128, 8192, 65536])
@pytest.mark.parametrize("gpus", [2, 7, 8, 64])
def test_no_projection_computes_more_than_all_of_its_time(
    friction: float, pass_: str, tokens: int, gpus: int
) -> None:
    model = Fit(
        H200, {("segments", "full", pass_): KernelCost(700e12, 30e-6)}, dict.fromkeys(MECHANISMS, friction)
    )
    question = Question("segments", "full", "auto", tokens, 64, 8, 128, 2, pass_)
    for one in project(model, Areas(DEFAULT_MASKS.draw), question, H200, gpus):
        if one.cost is not None and one.tflops is not None:
            assert one.cost.exposed_s >= 0 and one.cost.efficiency <= 1 and one.tflops <= 700


@pytest.fixture
def fast_ulysses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The rows of a projection from ranks where ulysses took a tenth less than its computation alone."""
    monkeypatch.chdir(tmp_path)
    one = study()

    def record(case: Case) -> dict[str, Any]:
        told = true_record(case)
        assert case.arrangement is not None
        if case.arrangement.mechanism == "ulysses":
            told |= {"milliseconds": 0.9 * told["computation_ms"]}
        return told

    write_records(one, record)
    write_table(one, "projection")
    write_table(one, "cost_model")
    return read_rows(table_file(one, "projection", "parquet"))


def test_the_table_of_a_study_has_no_efficiency_above_1(fast_ulysses: list[dict[str, Any]]) -> None:
    can_run = [row for row in fast_ulysses if row["tflops"] is not None]
    assert len(can_run) > 100
    assert all(row["exposed_ms"] >= 0 and 0 < row["efficiency"] <= 1 for row in can_run)
    assert (
        max(row["tflops"] for row in can_run) <= max(rate.flops_per_s for rate in RATES.values()) / 1e12 + 1
    )


def _row(mechanism: str, gpus: int, ms: float, pass_: str = "forward") -> dict[str, Any]:
    shape = {"topology_ulysses": 2, "topology_ring": gpus // 2, "topology_windows": 1}
    what = {"cluster": "c", "kernel": "segments", "pattern": "full", "q_heads": 64, "kv_heads": 8}
    times = {"computation_ms": 1.0, "exposed_ms": ms - 1.0, "efficiency": 1 / ms, "tflops": 700 / ms}
    more = {"tokens_per_rank": 8192, "world_size": gpus, "mechanism": mechanism, "pass": pass_}
    return what | more | times | shape


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (None, "ulysses on 8 to 16 GPUs (computing 98% of the time)."),
        (0.01, "ulysses on 8 to 16 GPUs (computing 98% of the time)."),
        (0.02, "ulysses and usp level on 8 GPUs (computing 97% to 98% of the time); "
         "ulysses on 16 GPUs (computing 98% of the time)."),
        (0.1, "ring_p2p, ulysses and usp level on 8 to 16 GPUs (computing 93% to 98% of the time)."),
    ],
)  # fmt: skip
def test_a_sentence_names_no_winner_within_the_models_error(error: float | None, said: str) -> None:
    rows = [
        _row(*one)
        for one in (
            ("ulysses", 8, 1.02),
            ("usp", 8, 1.035),
            ("ring_p2p", 8, 1.07),
            ("ulysses", 16, 1.02),
            ("usp", 16, 1.05),
            ("ring_p2p", 16, 1.08),
        )
    ]
    (finding,) = scale_findings(rows, error)
    assert [sentence for _, sentence in finding.sentences] == [said]


def test_a_single_best_is_told_with_its_topologies() -> None:
    (finding,) = scale_findings([_row("usp", 8, 1.02), _row("usp", 16, 1.03), _row("ulysses", 8, 1.5)], 0.1)
    assert [sentence for _, sentence in finding.sentences] == [
        "usp as 2x4, 2x8 on 8 to 16 GPUs (computing 97% to 98% of the time)."
    ]


def test_the_report_takes_the_error_of_the_points_left_out() -> None:
    rows = [_row("ulysses", 8, 1.02), _row("usp", 8, 1.05)]
    for ratio, level in ((1.01, False), (0.9, True)):
        checks = [{"what": "left out", "ratio": ratio}, {"what": "published", "ratio": 3.0}]
        data = ReportData.__new__(ReportData)
        object.__setattr__(data, "rows", {"projection": rows, "cost_model": checks})
        part = scale(data)
        assert part is not None
        assert ("level on 8 GPUs" in part["findings"][0].sentences[0][1]) is level


def test_project_says_which_are_level_and_marks_them_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    one = study()
    # Each record is a fifth off, up or down: what is nearer than that, the model cannot tell apart.
    number = iter(range(10**6))
    write_records(one, lambda case: _off(true_record(case), 1.2 if next(number) % 2 else 0.8))
    from typer.testing import CliRunner

    from longca.cli.main import app

    done = CliRunner().invoke(app, project_words(gpus="64", tokens="64k"))
    assert "Forward: " in done.output and "are level: nearer than the model's error of" in done.output
    _, lines = printed(*project_words(gpus="64", tokens="64k"))
    assert set(lines) == set(MECHANISMS)


def _off(told: dict[str, Any], by: float) -> dict[str, Any]:
    return told | {"milliseconds": told["milliseconds"] * by}


def test_a_friction_of_a_mechanism_that_was_not_measured_is_bounded_too() -> None:
    model = Fit(H200, {}, {"ulysses": 0.5})
    assert model.rubbed("usp", Cost(1.0, 0.0, 1.0)).total_s == 1.0
    assert replace(model, friction={}).rubbed("usp", Cost(1.0, 0.5, 1.5)).total_s == 1.5
