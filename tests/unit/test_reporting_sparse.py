"""What is said of block-sparse kernels: speed-up over density 1, memory, statuses, and the paper's order."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from reporting_records import Change, sparse_study, write_records

from longca.cases import Case
from longca.reporting.cells import Cell, cells_of
from longca.reporting.figures.drawing import draw
from longca.reporting.long import read_rows
from longca.reporting.names import table_file
from longca.reporting.sections import Section
from longca.reporting.sparse_findings import paper_order
from longca.reporting.sparse_speedup import speedups
from longca.reporting.tables import sections_of, write_table
from longca.study.model import Study


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def tabled(study: Study, change: Change = lambda case: {}) -> Study:
    write_records(study, change)
    write_table(study, "sparse", partial=True)
    return study


def cells(study: Study, change: Change = lambda case: {}) -> list[Cell]:
    return cells_of(read_rows(table_file(tabled(study, change), "sparse", "parquet")))


def sections(study: Study, change: Change = lambda case: {}) -> dict[str, Section]:
    rows = read_rows(table_file(tabled(study, change), "sparse", "parquet"))
    return {section.title.partition(",")[0]: section for section in sections_of("sparse", rows)}


def kept(case: Case) -> dict[str, Any]:
    """The area and density of a case's map."""
    assert case.density_nominal is not None
    return {"area": case.seqlen**2 * case.density_nominal, "density": case.density_nominal}


def at_density(by_kernel: dict[str, Callable[[float], float]]) -> Change:
    """Milliseconds of each kernel, a function of the density."""
    return lambda case: kept(case) | {"milliseconds": by_kernel[case.kernel](case.density_nominal or 0.0)}


TIMES = at_density({"flex": lambda density: 10 * density, "segments": lambda density: 1 + 4 * density})


def test_speed_up_is_over_the_same_kernel_on_the_whole_map() -> None:
    study = sparse_study(densities=[0.25, 1.0])
    found = cells(study, TIMES)
    gains = dict(zip([(cell.kernel, cell.place.density) for cell in found], speedups(found), strict=True))
    assert gains == {
        ("flex", 0.25): pytest.approx(4.0),
        ("flex", 1.0): 1.0,
        ("segments", 0.25): pytest.approx(2.5),
        ("segments", 1.0): 1.0,
    }
    section = sections(study, TIMES)["Forward speed-up over the same kernel at density 1"]
    assert section.rows == (("uniform_block", "2048", "64", "0.25", "4.00", "2.50"),)
    assert section.best == {(0, 4)}
    (drawn,) = draw(study, "sparse_speedup_over_density")["datasets"].values()
    assert sorted(row["speedup"] for row in drawn) == [1.0, 1.0, 2.5, 4.0]


def test_without_a_number_on_the_whole_map_there_is_no_speed_up() -> None:
    def change(case: Case) -> dict[str, Any]:
        lost = case.kernel == "flex" and case.density_nominal == 1
        return {"status": "out_of_memory"} if lost else TIMES(case) or {}

    section = sections(sparse_study(densities=[0.25, 1.0]), change)[
        "Forward speed-up over the same kernel at density 1"
    ]
    # What stands there is the cell's own status: its throughput is known, its gain is not.
    assert section.rows[0][4:] == ("ok", "2.50")
    titles = sections(sparse_study(densities=[0.25, 0.5]))
    assert not any("speed-up" in title for title in titles)


def test_memory_and_statuses_stand_in_the_table() -> None:
    study = sparse_study(passes=["forward", "backward"], densities=[0.25, 1.0])

    def change(case: Case) -> dict[str, Any]:
        if case.kernel == "flex" and case.pass_ == "backward":
            return {"status": "unsupported"} if case.density_nominal == 1 else {"status": "crashed"}
        return {"peak_memory_bytes": 3 * 2**20}

    found = sections(study, change)
    memory = found["Forward peak memory over the inputs in MiB"]
    assert [row[4:] for row in memory.rows] == [("3.00", "3.00")] * 2
    statuses = found["Status of the block-sparse kernels over all lengths and densities"]
    assert statuses.headers == ("Pattern", "Block (tokens)", "Heads", "Pass", "flex", "segments")
    assert statuses.rows == (
        ("uniform_block", "64", "4-2", "forward", "ok", "ok"),
        ("uniform_block", "64", "4-2", "backward", "crashed 1 of 2, unsupported 1 of 2", "ok"),
    )


def verdicts(study: Study, change: Change) -> dict[str, str]:
    (finding,) = paper_order(cells(study, change))
    return dict(finding.sentences)


# The paper's shapes: heads that are equal, both block sizes.
def paper_study(*kernels: str, **sparse: Any) -> Study:
    grid = {"kernels": [*kernels], "heads": ["4-4"], "blocks": {"uniform_block": [64, 128]}}
    return sparse_study(**(grid | sparse))


def speeds(**milliseconds: float) -> Change:
    return lambda case: kept(case) | {"milliseconds": milliseconds[case.kernel]}


def test_an_order_that_holds_on_every_cell_is_reproduced() -> None:
    study = paper_study("flashinfer", "fa2_sparse")
    said = verdicts(study, speeds(flashinfer=1.0, fa2_sparse=2.0))
    assert said["flashinfer over fa2_sparse, blocks of 128, forward"] == (
        "reproduced: 2.00 times the throughput, 2 cells."
    )


def test_an_order_the_other_way_round_is_refuted() -> None:
    said = verdicts(paper_study("flashinfer", "fa2_sparse"), speeds(flashinfer=2.0, fa2_sparse=1.0))
    assert said["flashinfer over fa2_sparse, blocks of 128, forward"] == (
        "refuted: 0.50 times the throughput, 2 cells."
    )


def test_an_order_that_changes_with_density_is_neither() -> None:
    times = {"flashinfer": lambda density: 1.0, "fa2_sparse": lambda density: 0.5 if density < 0.5 else 2.0}
    said = verdicts(paper_study("flashinfer", "fa2_sparse", densities=[0.1, 0.5, 0.8]), at_density(times))
    assert said["flashinfer over fa2_sparse, blocks of 128, forward"] == (
        "neither reproduced nor refuted: faster in 2, slower in 1, level within the spread in 0 of 3 cells "
        "(0.50 to 2.00 times the throughput, 3 cells)."
    )


def test_a_comparison_without_numbers_is_not_tested_and_says_why() -> None:
    def change(case: Case) -> dict[str, Any]:
        return {"status": "missing", "reason": "No module named 'block_sparse_attn'"} | (
            {} if case.kernel == "fa2_sparse" else {"status": "ok", "reason": None} | kept(case)
        )

    study = paper_study("flashinfer", "fa2_sparse")
    said = verdicts(study, lambda case: kept(case) if case.kernel == "flashinfer" else change(case))
    assert said["flashinfer over fa2_sparse, blocks of 128, forward"] == (
        "not tested: fa2_sparse missing (No module named 'block_sparse_attn')."
    )
    assert said["vsa_triton over flashinfer, blocks of 64, forward"] == (
        "not tested: vsa_triton is not in this grid."
    )
    assert not any(subject.startswith("vsa over") for subject in said)


def test_blocks_of_128_and_the_backward_are_compared_kernel_by_kernel() -> None:
    def change(case: Case) -> dict[str, Any]:
        milliseconds = (1.0 if case.block == 128 else 2.0) * (4.0 if case.pass_ == "backward" else 1.0)
        return kept(case) | {"milliseconds": milliseconds, "flags": ["noisy"]}

    said = verdicts(paper_study("segments", passes=["forward", "backward"]), change)
    assert said["blocks of 128 over blocks of 64, segments, backward"] == (
        "reproduced: 2.00 times the throughput, 2 cells, some flagged noisy."
    )
    # 2.5 times the FLOPs in 4 times the time.
    assert said["backward as the bottleneck, segments: forward over backward"] == (
        "reproduced: 1.60 times the throughput, 4 cells, some flagged noisy; backward takes 4.00 times as long."
    )


def test_the_verdicts_stand_above_the_figure_of_throughputs() -> None:
    study = paper_study("flashinfer", "fa2_sparse")
    tabled(study, speeds(flashinfer=1.0, fa2_sparse=2.0))
    above = draw(study, "sparse_throughput_over_density")["title"]["subtitle"]
    said = " ".join(above)
    assert (
        "The paper's order of block-sparse kernels (arXiv 2510.17896), a CPU, 2 threads: reproduced: " in said
    )
    assert "reproduced: flashinfer over fa2_sparse, blocks of 128, forward" in said
    assert "not tested: vsa_triton over flashinfer, blocks of 64, forward" in said
    assert max(map(len, above)) <= 80


def test_devices_are_told_apart() -> None:
    def change(case: Case) -> dict[str, Any]:
        device = "a GPU" if case.density_nominal == 0.25 else "another GPU"
        return kept(case) | {"environment": {"device": device}}

    found = paper_order(cells(paper_study("segments"), change))
    assert [finding.heading.rpartition(", ")[2] for finding in found] == ["a GPU", "another GPU"]
