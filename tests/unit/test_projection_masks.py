"""What is projected is of a study's own masks: its parameters, seed and lengths, as measuring draws them."""

from pathlib import Path
from typing import Any

import pytest
from modelled_records import rank_columns
from reporting_records import write_records

from longca.cases import Case, study_series
from longca.data.histogram import Histogram, write_histogram
from longca.errors import LongcaError
from longca.flops import attention_flops
from longca.masks.mask import draw_mask
from longca.masks.patterns import PATTERNS
from longca.measure.masks import case_mask
from longca.parallel.clusters import find_cluster
from longca.parallel.cost_model import KernelCost, Workload, predict
from longca.reporting.long import read_rows
from longca.reporting.names import results_of, table_file
from longca.reporting.scale.areas import Areas
from longca.reporting.tables import write_table
from longca.study.loading import check_study
from longca.study.masks import study_masks
from longca.study.model import Study

# Short documents, as no published corpus has them.
MINE = Histogram(((100, 100), (300, 300)), (0.5, 0.5), (7, 7))
RATE = KernelCost(400e12)
CLUSTER = find_cluster("h200_400g")
MASKS = [{}, {"window": 128}, {"window": 64, "global_tokens": 32, "block": 256}]


def study(
    seqlens: tuple[int, ...] = (2048,),
    patterns: str | list[str] = "all",
    dataset: str = "mine_long",
    seed: int = 7,
    **mask: int,
) -> Study:
    """A study over a corpus of its own, on one and two ranks."""
    grid = {
        "mechanisms": ["ulysses", "ring_p2p"],
        "kernels": ["segments"],
        "patterns": patterns,
        "world_sizes": [1, 2],
        "tokens_per_rank": list(seqlens),
        "datasets": [dataset],
        "heads": ["64-8"],
    }
    return check_study(
        {
            "study": "own",
            "seed": seed,
            "mask": mask,
            "datasets": {"mine": {"layout": "pile", "files": ["x.jsonl"]}},
            "measure": {"device": "cuda"},
            "context_parallel": grid,
        },
        "test",
    )


@pytest.fixture(autouse=True)
def lengths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The corpus, counted."""
    monkeypatch.chdir(tmp_path)
    file = Path("results/own/lengths/mine.csv")
    write_histogram(file, MINE)
    return file


def first_cases(one: Study) -> dict[tuple[str, str, int], Case]:
    """Sample 0 of each mask of a study."""
    cases = (case for series in study_series(one) for case in series.cases if case.sample == 0)
    return {(case.pattern, case.dataset, case.seqlen): case for case in cases}


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("dataset", ["mine_long", "mine", "prolong512k_long"])
@pytest.mark.parametrize("seed", [7, 42])
def test_every_pattern_at_every_length_has_the_area_that_measuring_draws(
    tmp_path: Path, mask: dict[str, int], dataset: str, seed: int
) -> None:
    one = study((2048, 3000), dataset=dataset, seed=seed, **mask)
    areas, cases = Areas(study_masks(one, results_of(one)).draw), first_cases(one)
    assert {pattern for pattern, _, _ in cases} == set(PATTERNS)
    for place, case in cases.items():
        assert areas.of(*place) == case_mask(one, results_of(one), case).area, place


def test_a_window_of_128_keeps_an_eighth_of_one_of_1024() -> None:
    areas = {
        window: Areas(study_masks(study(window=window), Path("results/own")).draw).of(
            "causal_sliding_window", "auto", 65536
        )
        for window in (128, 1024)
    }
    # Queries past the window keep window + 1 keys.
    assert areas == {window: (window + 1) * 65536 - window * (window + 1) // 2 for window in (128, 1024)}


def test_at_a_measured_length_the_measured_area_is_taken_and_of_sample_0() -> None:
    drawn: list[tuple[str, int, str]] = []

    def draw(pattern: str, seqlen: int, dataset: str) -> Any:
        drawn.append((pattern, seqlen, dataset))
        return draw_mask(pattern, seqlen)

    common = {"pattern": "causal", "dataset": "auto"}
    rows = [
        common | {"seqlen": 512, "sample": 1, "area": 5.0},
        common | {"seqlen": 512, "sample": 0, "area": 7.0},
        common | {"seqlen": 1024, "sample": 1, "area": 9.0},
        common | {"seqlen": 2048, "sample": 0, "status": "not measured"},
    ]
    areas = Areas(draw, rows)
    assert areas.of("causal", "auto", 512) == 7.0 and not drawn
    for seqlen in (1024, 2048, 2048):
        assert areas.of("causal", "auto", seqlen) == seqlen * (seqlen + 1) / 2
    assert drawn == [("causal", 1024, "auto"), ("causal", 2048, "auto")]


def true_record(one: Study, case: Case) -> dict[str, Any]:
    """A case as a machine of one rate measures it, on the mask that measuring draws."""
    assert case.arrangement is not None
    mask = case_mask(one, results_of(one), case)
    load = Workload(mask.area, case.seqlen, case.q_heads, case.kv_heads, case.head_dim, 2, case.pass_)
    cost = predict(case.arrangement.mechanism, case.arrangement.topology, load, RATE, CLUSTER)
    return {"area": mask.area, "mask_digest": mask.digest} | rank_columns(cost)


def test_the_tables_of_a_study_over_its_own_corpus_project_its_own_masks() -> None:
    patterns = ["full_document", "causal_sliding_window", "prefix_lm_causal"]
    one = study(patterns=patterns, window=128)
    write_records(one, lambda case: true_record(one, case))
    write_table(one, "projection")
    rows = [
        row for row in read_rows(table_file(one, "projection", "parquet")) if row["mechanism"] == "ring_p2p"
    ]
    assert {row["pattern"] for row in rows} == set(patterns) and {row["world_size"] for row in rows} >= {8}
    masks = study_masks(one, results_of(one))
    for row in (row for row in rows if row["world_size"] <= 64):
        dataset = "mine_long" if row["pattern"] == "full_document" else "auto"
        area = masks.draw(row["pattern"], 2048 * row["world_size"], dataset).area
        flops = attention_flops(area, 64, 128, row["pass"]) / row["world_size"]
        # What is no even deal counts 3 % more on the rank with the most.
        assert row["computation_ms"] == pytest.approx(1.03 * flops / 400e12 * 1e3, rel=1e-6)


@pytest.mark.parametrize("dataset", ["mine", "mine_long"])
def test_a_corpus_that_is_not_counted_is_named(lengths: Path, dataset: str) -> None:
    lengths.unlink()
    one = study(patterns=["full_document"], dataset=dataset)
    (case, *_) = first_cases(one).values()
    said = "results/own/lengths/mine.csv: is missing; right: snakemake results/own/lengths/mine.csv"
    with pytest.raises(LongcaError, match=said):
        case_mask(one, results_of(one), case)
    with pytest.raises(LongcaError, match=said):
        study_masks(one, results_of(one)).draw("full_document", 2048, dataset)
