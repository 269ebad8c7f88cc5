"""`longca project`: each pass on its own best topology, and mistakes that name the option and what is allowed."""

import re
from pathlib import Path
from typing import Any

import pytest
from modelled_records import rank_columns
from reporting_records import write_records
from typer.testing import CliRunner

from longca.cases import Case
from longca.cli.main import app
from longca.errors import LongcaError
from longca.masks.mask import draw_mask
from longca.parallel.clusters import find_cluster
from longca.parallel.cost_model import KernelCost, Workload, predict
from longca.reporting.collect import collect
from longca.reporting.long import long_row
from longca.reporting.scale.areas import Areas
from longca.reporting.scale.ground import fitted
from longca.reporting.scale.projection import Question, project
from longca.reporting.words import digits
from longca.study.loading import read_study
from longca.study.masks import study_masks
from longca.study.model import Study

CONFIG = Path("tiny.yaml")
# A call of the backward costs a constant, so that it wants fewer steps of a ring than the forward.
RATES = {"forward": KernelCost(700e12), "backward": KernelCost(600e12, 100e-6)}
H200 = find_cluster("h200_400g")


def study(passes: tuple[str, ...] = ("forward", "backward")) -> Study:
    """Two patterns, of two kernels one, written to CONFIG."""
    words = ", ".join(passes)
    CONFIG.write_text(
        f"""
study: tiny
measure: {{device: cuda}}
context_parallel:
  - &two
    mechanisms: [ulysses, ring_p2p, ring_allgather]
    kernels: [segments]
    patterns: [full, causal]
    world_sizes: [1, 2]
    tokens_per_rank: [8k, 32k]
    heads: [64-8]
    passes: [{words}]
  - <<: *two
    kernels: [fa3]
    patterns: [full]
""",
        encoding="utf-8",
    )
    return read_study(CONFIG)


def true_record(case: Case) -> dict[str, Any]:
    assert case.arrangement is not None
    mask = draw_mask(case.pattern, case.seqlen, case.dataset)
    load = Workload(mask.area, case.seqlen, case.q_heads, case.kv_heads, case.head_dim, 2, case.pass_)
    cost = predict(case.arrangement.mechanism, case.arrangement.topology, load, RATES[case.pass_], H200)
    return {"area": mask.area, "mask_digest": mask.digest} | rank_columns(cost)


@pytest.fixture
def measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Study:
    monkeypatch.chdir(tmp_path)
    one = study()
    write_records(one, true_record)
    return one


def asked(**options: str) -> list[str]:
    chosen = {"study": str(CONFIG), "pattern": "full", "gpus": "64"} | options
    return ["project", *(word for name, value in chosen.items() for word in (f"--{name}", value))]


def printed(*words: str) -> tuple[list[str], dict[str, list[str]]]:
    """The header's cells and each mechanism's, as `longca project` prints them; columns are two spaces apart."""
    done = CliRunner().invoke(app, list(words))
    assert done.exit_code == 0, (done.output, done.exception)
    lines = [re.split(r" {2,}", line.strip()) for line in done.output.splitlines()]
    start = next(number for number, line in enumerate(lines) if line[0] == "Mechanism")
    return lines[start], {line[0]: line[1:] for line in lines[start + 1 :] if len(line) > 1}


@pytest.mark.parametrize("pattern", ["full", "causal"])
@pytest.mark.parametrize("gpus", [8, 64, 128])
def test_each_pass_stands_on_its_own_best_topology(measured: Study, pattern: str, gpus: int) -> None:
    headers, lines = printed(*asked(pattern=pattern, gpus=str(gpus)))
    rows = [long_row(item) for item in collect(measured, "context_parallel")]
    found = fitted(rows)
    assert found is not None
    areas = Areas(study_masks(measured, Path("results/tiny")).draw, rows)
    for number, pass_ in enumerate(("forward", "backward")):
        question = Question("segments", pattern, "auto", 8192, 64, 8, 128, 2, pass_)
        cluster = H200.with_inside(found[0].cluster.inside)
        best = {one.mechanism: one for one in project(found[0], areas, question, cluster, gpus)}
        assert set(lines) == set(best)
        for mechanism, one in best.items():
            cells = lines[mechanism][3 * number : 3 * number + 3]
            if one.topology is None or one.tflops is None or one.cost is None:
                assert cells == ["–"] * 3
                continue
            windows = f"x{one.topology.windows}" if one.topology.windows > 1 else ""
            shape = f"{one.topology.ulysses}x{one.topology.ring}{windows}"
            assert cells == [shape, digits(one.tflops), f"{one.cost.efficiency:.2f}"]
    assert [name for name in headers if "U x R" in name] == ["Forward on U x R", "Backward on U x R"]


def test_passes_of_other_topologies_are_told_apart(measured: Study) -> None:
    _, lines = printed(*asked(gpus="64"))
    topologies = {name: (cells[0], cells[3]) for name, cells in lines.items()}
    assert topologies == {
        "ulysses": ("64x1", "64x1"),
        "ring_p2p": ("1x64", "1x64"),
        "ring_allgather": ("1x64", "1x64"),
        "usp": ("2x32", "8x8"),
        "loongtrain": ("1x64x8", "8x8x2"),
    }


def test_why_a_mechanism_cannot_run_stands_below(measured: Study) -> None:
    done = CliRunner().invoke(app, asked(gpus="128"))
    assert "ulysses: 64 query heads do not divide over 128 ranks." in done.output


def test_a_study_of_one_pass_is_projected_in_that(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_records(study(passes=("backward",)), true_record)
    headers, lines = printed(*asked())
    assert [name for name in headers if "U x R" in name] == ["Backward on U x R"]
    assert all(len(cells) == 3 for cells in lines.values())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"pattern": "nonsense"},
            "--pattern: 'nonsense' is not a pattern measured on ranks in tiny.yaml; allowed: causal, full",
        ),
        (
            {"pattern": "ful"},
            "--pattern: 'ful' is not a pattern measured on ranks in tiny.yaml; did you mean",
        ),
        (
            {"pattern": "causal", "kernel": "fa3"},
            "--kernel: 'fa3' is not a kernel measured on causal on ranks in tiny.yaml; allowed: segments",
        ),
        (
            {"kernel": "naive"},
            "--kernel: 'naive' is not a kernel measured on full on ranks in tiny.yaml; allowed: fa3, segments",
        ),
        ({"heads": "3-2"}, "--heads: '3-2': the 2 key-value heads do not divide the 3 query heads"),
        (
            {"heads": "64"},
            "--heads: '64' is no pair of heads; allowed: query heads - key-value heads, as 64-8",
        ),
        ({"tokens": "8q"}, "--tokens: '8q' is no number of tokens; allowed: a whole number above 0"),
        ({"tokens": "0"}, "--tokens: '0' is no number of tokens; allowed: a whole number above 0"),
        (
            {"cluster": "h200_4g"},
            "--cluster: 'h200_4g' is not a cluster; did you mean 'h200_400g'? allowed: h100",
        ),
        ({"cluster": "nonsense"}, "--cluster: 'nonsense' is not a cluster; allowed: h100_400g"),
    ],
)
def test_a_mistake_names_the_option_and_what_is_allowed(
    measured: Study, options: dict[str, str], said: str
) -> None:
    refused = CliRunner().invoke(app, asked(**options))
    assert isinstance(refused.exception, LongcaError), refused.output
    assert str(refused.exception).startswith(said)


def test_a_study_with_nothing_on_ranks_is_told_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    CONFIG.write_text(
        "study: tiny\ndense: {kernels: [naive], patterns: [full], seqlens: [8k], heads: [4-2]}\n"
    )
    refused = CliRunner().invoke(app, asked())
    assert isinstance(refused.exception, LongcaError)
    assert str(refused.exception).startswith("--study: tiny.yaml: nothing measured on ranks of a known GPU")
