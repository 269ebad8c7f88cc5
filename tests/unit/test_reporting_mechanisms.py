"""Tables and figure of context parallel: mechanisms side by side, what they communicate, and one rank beside them."""

import json
import re
from typing import Any

import pytest
from reporting_records import write_records

from longca.cases import Case
from longca.reporting.cells import cells_of
from longca.reporting.figures.drawing import draw
from longca.reporting.figures.print_form import printed
from longca.reporting.long import read_rows
from longca.reporting.mechanism_findings import mechanism_findings
from longca.reporting.mechanisms import as_mechanisms, efficiency
from longca.reporting.names import figure_names, table_file, table_names
from longca.reporting.tables import sections_of, write_table
from longca.study.loading import check_study
from longca.study.model import Study


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def study(**grid: Any) -> Study:
    config = {
        "mechanisms": ["ulysses", "ring_p2p", "usp"],
        "kernels": ["segments"],
        "patterns": ["full", "causal_document"],
        "world_sizes": [1, 2, 4],
        "tokens_per_rank": [1024],
        "topologies": {"usp": ["2x2"]},
        "heads": ["4-2"],
        "passes": ["forward"],
    }
    return check_study(
        {"study": "tiny", "measure": {"device": "cpu"}, "context_parallel": config | grid}, "test"
    )


def on_ranks(case: Case) -> dict[str, Any]:
    """2 ms a pass, of which 1.5 ms are computation."""
    return {
        "milliseconds": 2.0,
        "rank_latency_ms": {"min": 1.8, "mean": 1.9, "max": 2.0},
        "communication_bytes": 3 * 2**20 * (case.world_size - 1),
        "communication_ms": 0.7,
        "computation_ms": 1.5,
        "imbalance": 1.25,
    }


def unlucky(case: Case) -> dict[str, Any]:
    assert case.arrangement is not None
    if case.arrangement.mechanism == "ulysses" and case.world_size == 4:
        nothing = (
            "rank_latency_ms",
            "communication_bytes",
            "communication_ms",
            "computation_ms",
            "imbalance",
        )
        return {"status": "unsupported", "reason": "heads do not divide", **dict.fromkeys(nothing)}
    return on_ranks(case)


def rows_of(one: Study, change=on_ranks) -> list[dict[str, Any]]:
    write_records(one, change)
    write_table(one, "context_parallel")
    return read_rows(table_file(one, "context_parallel", "parquet"))


def test_a_study_on_ranks_has_its_table_and_figure() -> None:
    assert table_names(study()) == ("context_parallel", "support", "verification")
    assert figure_names(study())[0] == "context_parallel_scaling"


def test_the_long_table_has_the_columns_of_the_record_flattened() -> None:
    row = next(row for row in rows_of(study()) if row["mechanism"] == "usp" and row["world_size"] == 4)
    assert (row["topology_ulysses"], row["topology_ring"], row["topology_windows"]) == (2, 2, 1)
    assert (row["topology_placement"], row["sharding"], row["head_chunks"]) == ("ulysses", "balanced", 1)
    assert (row["rank_latency_ms_min"], row["rank_latency_ms_max"]) == (1.8, 2.0)
    assert row["communication_bytes"] == 3 * 3 * 2**20
    assert "block" not in row and "density_nominal" not in row


def test_mechanisms_are_the_columns_and_ranks_a_key_of_the_rows() -> None:
    throughput, *further = sections_of("context_parallel", rows_of(study(), unlucky))
    # On two ranks usp's ring has one shard: it is Ulysses.
    columns = ("single", "ulysses", "ring_p2p", "usp 2x1 = ulysses", "usp 2x2")
    assert throughput.headers == ("Pattern", "Ranks", "Length (tokens)", *columns)
    assert [row[:3] for row in throughput.rows] == [
        (pattern, str(ranks), str(1024 * ranks))
        for pattern in ("full", "causal_document")
        for ranks in (1, 2, 4)
    ]
    one, two, four = throughput.rows[:3]
    # 4 * (1024 ranks)^2 / 4 * 4 heads * 128 FLOPs in 2 ms, shared by the ranks.
    assert [float(row[column]) for row, column in ((one, 3), (two, 5), (four, 5))] == pytest.approx(
        [0.268, 0.537, 1.07], rel=5e-3
    )
    assert four[4] == "unsupported" and two[3] == "not in grid"
    titles = [section.title for section in further]
    assert [title.split()[1] for title in titles] == [
        "efficiency",
        "communication",
        "MiB",
        "imbalance",
        "peak",
    ]
    shares = further[0].rows[2]
    assert shares[5] == "0.750"
    assert further[2].rows[2][5] == "9.00"


def test_what_differs_is_said_and_nothing_else() -> None:
    several = study(
        mechanisms=["ulysses", "ring_p2p"],
        shardings=["zigzag", "balanced"],
        head_chunks=[1, 2],
        world_sizes=[2],
        topologies={},
    )
    labels = {row["kernel"] for row in as_mechanisms(rows_of(several))}
    assert labels == {"ulysses", "ulysses 2 chunks", "ring_p2p zigzag", "ring_p2p balanced"}


def test_a_sharding_a_pattern_makes_no_column_of_its_own() -> None:
    one = study(mechanisms=["ring_p2p"], pattern_shardings={"full": ["contiguous"]}, topologies={})
    assert {row["kernel"] for row in as_mechanisms(rows_of(one))} == {"single", "ring_p2p"}


def test_a_cell_without_a_number_has_no_efficiency() -> None:
    cells = cells_of(as_mechanisms(rows_of(study(), unlucky)))
    shares = {(cell.kernel, cell.place.ranks): efficiency(cell) for cell in cells}
    assert shares["ulysses", 4] is None and shares["ring_p2p", 4] == pytest.approx(0.75)


def test_the_figure_has_a_panel_a_pattern_and_one_rank_as_the_ideal() -> None:
    rows_of(study(), unlucky)
    spec = draw(study(), "context_parallel_scaling")
    (rows,) = (value for value in spec["datasets"].values())
    values = rows if isinstance(rows, list) else json.loads(rows)
    assert {row["kernel"] for row in values} == {"ulysses", "ring_p2p", "usp 2x1 = ulysses", "usp 2x2"}
    assert [facet.split("\n")[0] for facet in dict.fromkeys(row["facet"] for row in values)] == [
        "full",
        "causal_document",
    ]
    full = [row for row in values if row["pattern"] == "full"]
    assert {row["ranks"] for row in full} == {2, 4}
    assert all(row["alone"] == pytest.approx(0.268, rel=5e-3) for row in full)
    (lost,) = (row for row in full if "tflops" not in row)
    assert (lost["kernel"], lost["ranks"], lost["status"]) == ("ulysses", 4, "unsupported")


def test_each_local_kernel_stands_beside_its_own_rank_alone() -> None:
    def change(case: Case) -> dict[str, Any]:
        assert case.arrangement is not None
        slower = 4.0 if case.kernel == "fa3" else 2.0
        faster = 0.5 if case.arrangement.mechanism == "ring_p2p" else 1.0
        return on_ranks(case) | {"milliseconds": slower * faster}

    one = study(
        kernels=["fa3", "segments"],
        patterns=["full"],
        world_sizes=[1, 2],
        topologies={},
        mechanisms=["ring_p2p"],
    )
    ((_, sentence),) = mechanism_findings(rows_of(one, change))[0].sentences
    assert sentence.startswith(
        "on 2 ranks ring_p2p over segments, 1.07 TFLOP/s a rank (4.00 of one rank alone)"
    )
    spec = draw(one, "context_parallel_scaling")
    (rows,) = (value for value in spec["datasets"].values())
    values = rows if isinstance(rows, list) else json.loads(rows)
    assert {(row["kernel"], round(row["alone"], 3)) for row in values} == {
        ("ring_p2p over fa3", 0.134),
        ("ring_p2p over segments", 0.268),
    }
    assert '"field": "local"' in json.dumps(spec)


@pytest.mark.parametrize("width_pt", [468, 240])
def test_a_printed_legend_says_names_whole_and_beside_each_other_only_where_there_is_room(
    width_pt: int,
) -> None:
    one = study(kernels=["fa3", "segments"], topologies={"usp": ["1x2"]}, world_sizes=[2])
    rows_of(one)
    svg, _ = printed(draw(one, "context_parallel_scaling"), width_pt)
    longest = "usp 1x2 over segments = ring_p2p"
    assert f">{longest}</text>" in svg
    width, height = map(float, re.search(r'viewBox="0 0 ([0-9.]+) ([0-9.]+)"', svg).groups())  # type: ignore[union-attr]
    assert width <= 2 * width_pt * 1.02 and height > 0


def test_errors_are_told_by_mechanism() -> None:
    write_records(study(), on_ranks)
    write_table(study(), "verification")
    first = sections_of("verification", read_rows(table_file(study(), "verification", "parquet")))[0]
    assert first.headers[3:] == ("single", "ulysses", "ring_p2p", "usp 2x1 = ulysses", "usp 2x2")


def test_the_findings_name_the_fastest_and_what_it_costs() -> None:
    def change(case: Case) -> dict[str, Any]:
        assert case.arrangement is not None
        faster = {"milliseconds": 1.6} if case.arrangement.mechanism == "ring_p2p" else {}
        return unlucky(case) | faster if case.arrangement.mechanism != "ulysses" else unlucky(case)

    first, refused = mechanism_findings(rows_of(study(patterns=["full"]), change))
    ((subject, sentence),) = first.sentences
    assert subject == "full, 1024 tokens a rank"
    assert sentence == (
        "on 2 ranks ring_p2p, 0.671 TFLOP/s a rank (2.50 of one rank alone), computing 94% of its time, imbalance 1.25"
        ", 1.25 times as fast as ulysses; "
        "on 4 ranks ring_p2p, 1.34 TFLOP/s a rank (5.00 of one rank alone), computing 94% of its time, imbalance 1.25"
        ", 1.25 times as fast as usp 2x2."
    )

    # A degenerate topology does not rank, flags are told.
    def flagged(case: Case) -> dict[str, Any]:
        mechanism = case.arrangement.mechanism if case.arrangement else ""
        return change(case) | {"flags": ["degenerate"] if mechanism == "ring_p2p" else ["noisy"]}

    ((_, doubtful),) = mechanism_findings(rows_of(study(patterns=["full"]), flagged))[0].sentences
    assert (
        "ring_p2p" not in doubtful
        and doubtful.startswith("on 2 ranks ulysses")
        and "(flagged noisy)" in doubtful
    )
    assert refused.sentences == (("ulysses", "unsupported on full at 4096 tokens: heads do not divide"),)
