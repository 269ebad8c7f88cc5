"""The cost model: its formulas by hand, a fit that finds what records were made from, its tables and figure."""

import zlib
from dataclasses import replace
from typing import Any

import pytest
from modelled_records import rank_columns
from reporting_records import write_records

from longca.cases import Case
from longca.errors import LongcaError
from longca.flops import attention_flops
from longca.masks.mask import draw_mask
from longca.parallel.clusters import Cluster, Link, clusters, find_cluster
from longca.parallel.cost_model import KernelCost, Workload, predict
from longca.parallel.topology import Topology
from longca.parallel.volume import sent_bytes
from longca.reporting.figures.drawing import draw
from longca.reporting.long import read_rows
from longca.reporting.names import figure_names, table_file, table_names
from longca.reporting.scale.areas import Areas
from longca.reporting.scale.fit import fit
from longca.reporting.scale.left_out import checked
from longca.reporting.scale.points import Point, measured_points
from longca.reporting.scale.projection import Question, project, topologies
from longca.reporting.scale.published import beside_published
from longca.reporting.scale.sections import scale_findings
from longca.reporting.tables import write_table
from longca.study.loading import check_study
from longca.study.masks import DEFAULT_MASKS
from longca.study.model import Study

# One second a byte inside a node, ten between; messages cost nothing, unless a test says so.
PLAIN = Cluster("plain", "", 4, Link(1.0, 0.0, False), Link(0.1, 0.0, True))
LOAD = Workload(area=100.0, seqlen=64, q_heads=8, kv_heads=2, head_dim=4, element_bytes=2, pass_="forward")
BACK = Workload(**{**vars(LOAD), "pass_": "backward"})
AREAS = Areas(DEFAULT_MASKS.draw)
SLOW, FAST = KernelCost(1e-9), KernelCost(1e9)


@pytest.mark.parametrize("load", [LOAD, BACK])
@pytest.mark.parametrize(
    ("mechanism", "topology"),
    [
        ("ulysses", Topology(4)),
        ("ulysses", Topology(2)),
        ("ring_p2p", Topology(ring=4)),
        ("usp", Topology(2, 2)),
        ("ring_allgather", Topology(ring=4)),
        ("loongtrain", Topology(1, 4, 2)),
    ],
)
def test_communication_alone_is_the_bytes_that_are_counted(load, mechanism, topology):
    tokens = load.seqlen // topology.world_size
    shape = (load.q_heads, load.kv_heads, load.head_dim, load.element_bytes, load.pass_)
    cost = predict(mechanism, topology, load, FAST, PLAIN)
    assert cost.communication_s == pytest.approx(sent_bytes(topology, tokens, *shape))


def test_what_is_hidden_and_what_is_exposed():
    # 16 tokens a rank of 2 KV heads of 4: K and V are 512 bytes, their gradients 1024.
    assert predict("ring_p2p", Topology(ring=4), LOAD, SLOW, PLAIN).exposed_s == pytest.approx(0, abs=1)
    backward = predict("ring_p2p", Topology(ring=4), BACK, SLOW, PLAIN)
    assert backward.exposed_s / 1024 == pytest.approx(1, rel=1e-3)  # the last gradients' way home
    # An all-to-all hides under nothing; in four chunks three quarters of it do.
    whole = predict("ulysses", Topology(4), LOAD, SLOW, PLAIN)
    assert whole.exposed_s == pytest.approx(whole.communication_s, rel=1e-3)
    chunked = predict("ulysses", Topology(4), LOAD, SLOW, PLAIN, head_chunks=4)
    assert chunked.exposed_s == pytest.approx(whole.communication_s / 4, rel=1e-3)
    gathered = predict("ring_allgather", Topology(ring=4), LOAD, SLOW, PLAIN)
    # Two KV heads are gathered one by one.
    assert gathered.exposed_s == pytest.approx(gathered.communication_s / 2, rel=1e-3)
    # With no work at all, all of it is exposed.
    idle = predict("ring_p2p", Topology(ring=4), LOAD, FAST, PLAIN)
    assert idle.total_s == pytest.approx(idle.communication_s)


def test_between_nodes_a_ring_is_as_slow_as_its_slowest_hop_and_windows_spare_it():
    ring = predict("ring_p2p", Topology(ring=8), LOAD, FAST, PLAIN)
    windows = predict("loongtrain", Topology(1, 8, 2), LOAD, FAST, PLAIN)
    # 8 tokens a rank: 256 bytes. Seven hops at ten seconds a byte; one such hop, and twice three inside.
    assert ring.total_s == pytest.approx(7 * 2560)
    assert windows.total_s == pytest.approx(2560 + 3 * 256)
    # Two ranks that exchange 640 bytes inside a node, and three hops of the ring across.
    both = predict("usp", Topology(2, 4), LOAD, FAST, PLAIN)
    assert both.communication_s == pytest.approx(640 + 3 * 2560)


def test_placement_decides_which_group_is_inside_a_node():
    heads_inside = predict("usp", Topology(4, 2), LOAD, FAST, PLAIN)
    ring_inside = predict("usp", Topology(4, 2, placement="ring"), LOAD, FAST, PLAIN)
    assert heads_inside.communication_s != ring_inside.communication_s
    nearby = Cluster("near", "", 8, PLAIN.inside, PLAIN.between)
    assert predict("usp", Topology(4, 2), LOAD, FAST, nearby) == predict(
        "usp", Topology(4, 2, placement="ring"), LOAD, FAST, nearby
    )


def test_more_ranks_of_the_slowest_count():
    even, uneven = (predict("ring_p2p", Topology(ring=2), one, SLOW, PLAIN) for one in (
        LOAD, Workload(**{**vars(LOAD), "imbalance": 1.5})
    ))  # fmt: skip
    assert uneven.computation_s == pytest.approx(1.5 * even.computation_s)


def study(**grid: Any) -> Study:
    config = {
        "mechanisms": ["ulysses", "ring_p2p", "ring_allgather"],
        "kernels": ["segments"],
        "patterns": ["full", "causal_document"],
        "world_sizes": [1, 2],
        "tokens_per_rank": ["8k", "32k"],
        "heads": ["64-8"],
    }
    return check_study(
        {"study": "tiny", "measure": {"device": "cuda"}, "context_parallel": config | grid}, "test"
    )


TRUE = KernelCost(500e12, 40e-6)
TRUE_CLUSTER = find_cluster("h200_400g").with_inside(Link(200e9, 30e-6, assumed=False))


def true_record(case: Case) -> dict[str, Any]:
    """A case as a machine with known constants would measure it, with 10 % of friction on ranks."""
    assert case.arrangement is not None
    area = draw_mask(case.pattern, case.seqlen, case.dataset).area
    load = Workload(area, case.seqlen, case.q_heads, case.kv_heads, case.head_dim, 2, case.pass_, 1.0)
    mechanism, topology = case.arrangement.mechanism, case.arrangement.topology
    cost = predict(mechanism, topology, load, TRUE, TRUE_CLUSTER)
    return {"area": area} | rank_columns(cost, 1.1 if case.world_size > 1 else 1.0)


@pytest.fixture
def rows(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_records(study(), true_record)
    write_table(study(), "context_parallel")
    return read_rows(table_file(study(), "context_parallel", "parquet"))


def test_a_fit_finds_the_constants_the_records_were_made_from(rows):
    found = fit(measured_points(rows), find_cluster("h200_400g"))
    assert found.cluster.inside.bytes_per_s == pytest.approx(200e9, rel=1e-6)
    assert found.cluster.inside.latency_s == pytest.approx(30e-6, rel=1e-6)
    assert not found.cluster.inside.assumed and found.cluster.between.assumed
    for cost in found.kernels.values():
        assert cost.flops_per_s == pytest.approx(500e12, rel=1e-6)
        assert cost.call_s == pytest.approx(40e-6, rel=1e-4)
    assert found.friction == pytest.approx(dict.fromkeys(("ulysses", "ring_p2p", "ring_allgather"), 1.1))


def test_calls_of_nearly_one_size_tell_no_constant(rows):
    # a ring's two calls beside one of twice their size: what rings are slower at is no constant of a call
    points = [point for point in measured_points(rows) if point.workload.seqlen == 16384]
    slower = [
        replace(point, computation_s=point.computation_s * (1.1 if point.mechanism == "ring_p2p" else 1.0))
        for point in points
        if point.mechanism in ("ring_p2p", "ulysses")
    ]
    highest = max(point.flops_a_rank / point.computation_s for point in slower)
    for cost in fit(slower, find_cluster("h200_400g")).kernels.values():
        assert cost.call_s == 0 and 0.8 * highest < cost.flops_per_s <= highest


def test_points_left_out_are_told_by_the_others(rows):
    points = measured_points(rows)
    found = checked(points, find_cluster("h200_400g"))
    assert len(found) == sum(point.topology.world_size > 1 for point in points) == 24
    for point, cost in found:
        assert cost.total_s == pytest.approx(point.whole_s, rel=1e-6)


def test_leaving_a_point_out_is_a_fit_to_all_the_others(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    several = study(kernels=["segments", "fa3"], world_sizes=[1, 2, 16])

    def uneven(case: Case) -> dict[str, Any]:
        """Times that no model has: each case off by its own factor; communication in part not measured."""
        told = true_record(case)
        off = 1 + (_number_of(case) % 97) / 97
        return told | {
            "computation_ms": told["computation_ms"] * off,
            "communication_ms": told["communication_ms"] * (off - 1 if case.world_size == 2 else 1),
            "milliseconds": told["milliseconds"] * off**2,
        }

    write_records(several, uneven)
    write_table(several, "context_parallel")
    points = measured_points(read_rows(table_file(several, "context_parallel", "parquet")))
    # One point of ring_allgather and one of fa3 on full: nothing else tells of that mechanism, of that rate.
    alone, unknown = (
        next(point for point in points if point.mechanism == "ring_allgather"),
        next(point for point in points if _rate(point) == ("fa3", "full") and point.mechanism == "ulysses"),
    )
    chosen = [
        point
        for point in points
        if point in (alone, unknown)
        or (point.mechanism != "ring_allgather" and _rate(point) != ("fa3", "full"))
    ]
    cluster = find_cluster("h200_400g")
    expected = []
    for point in chosen:
        cost = fit([other for other in chosen if other is not point], cluster).modelled(point)
        if cost is not None and point.mechanism != "single":
            expected.append((point, cost))
    assert checked(chosen, cluster) == expected
    told_of = [point for point, _ in expected]
    assert alone in told_of and unknown not in told_of and len(told_of) > 40


def _rate(point: Point) -> tuple[str, str]:
    return point.kernel, point.pattern


def _number_of(case: Case) -> int:
    """A number of a case that is the same in every process."""
    return zlib.crc32(repr(case).encode())


def test_degenerate_topologies_are_no_points(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    one = study(mechanisms=["usp"], patterns=["full"], tokens_per_rank=["8k"])
    write_records(one, lambda case: true_record(case) | {"flags": ["degenerate"] * (case.world_size > 1)})
    write_table(one, "context_parallel")
    points = measured_points(read_rows(table_file(one, "context_parallel", "parquet")))
    assert {point.mechanism for point in points} == {"single"}


def test_a_projection_names_each_mechanisms_best_topology_and_why_one_cannot_run(rows):
    model = fit(measured_points(rows), find_cluster("h200_400g"))
    question = Question("segments", "full", "auto", 8192, 64, 8, 128, 2, "forward")
    on_128 = {one.mechanism: one for one in project(model, AREAS, question, model.cluster, 128)}
    assert on_128["ulysses"].tflops is None
    assert on_128["ulysses"].reason == "64 query heads do not divide over 128 ranks"
    usp = on_128["usp"]
    assert usp.topology is not None and usp.cost is not None and usp.tflops is not None
    assert usp.topology.ulysses * usp.topology.ring == 128
    area = draw_mask("full", 128 * 8192).area
    flops = attention_flops(area, 64, 128, "forward") / 128
    assert usp.tflops == pytest.approx(flops / usp.cost.total_s / 1e12, rel=1e-6)
    best = [
        one.tflops for one in project(model, AREAS, question, model.cluster, 128) if one.tflops is not None
    ]
    assert best == sorted(best, reverse=True)
    with pytest.raises(LongcaError, match="no measured rate of segments on causal, forward"):
        project(
            model,
            AREAS,
            Question("segments", "causal", "auto", 8192, 64, 8, 128, 2, "forward"),
            model.cluster,
            8,
        )


def test_a_mechanism_is_projected_on_topologies_where_it_is_itself():
    assert [t.ulysses for t in topologies("usp", 8)] == [2, 4]
    assert [(t.ulysses, t.ring, t.windows) for t in topologies("loongtrain", 8)] == [(1, 8, 2), (2, 4, 2)]
    assert list(topologies("loongtrain", 2)) == []


def test_published_figures_stand_beside_the_model():
    found = beside_published()
    assert len(found) == 160
    assert {one.anchor.gpus for one in found} == {8, 16, 32, 64}
    wide = [one.ratio for one in found if one.anchor.method in ("ulysses", "usp", "loongtrain")]
    plain = [
        one.ratio
        for one in found
        if one.anchor.method in ("ulysses", "usp", "loongtrain") and one.anchor.pattern in ("full", "causal")
    ]
    assert max(abs(ratio - 1) for ratio in plain) < 0.2 and max(wide) < 3


def test_tables_figure_and_sentences_are_marked_modelled(rows):
    one = study()
    assert {"cost_model", "projection"} <= set(table_names(one)) and "projection" in figure_names(one)
    write_table(one, "cost_model")
    write_table(one, "projection")
    constants = read_rows(table_file(one, "cost_model", "parquet"))
    origins = {(row["name"], row["origin"]) for row in constants if row["what"] == "constant"}
    assert ("bandwidth inside a node", "fitted") in origins and (
        "bandwidth between a node",
        "assumed",
    ) not in origins
    assert ("bandwidth between nodes", "assumed") in origins
    assert {row["origin"] for row in constants if row["what"] != "constant"} == {"modelled"}
    projected = read_rows(table_file(one, "projection", "parquet"))
    assert {row["origin"] for row in projected} == {"modelled"}
    assert {row["world_size"] for row in projected} == {8, 16, 32, 64, 128, 256, 512, 1024}
    assert {row["cluster"] for row in projected} == {name for name in clusters() if name.startswith("h200")}
    spec = draw(one, "projection")
    assert "Modelled" in spec["title"]["text"] and "not measured" in spec["title"]["subtitle"][0]
    points = spec["spec"]["layer"][1]["mark"]
    assert points["type"] == "point" and points["filled"] is False
    for finding in scale_findings(projected):
        assert finding.heading.startswith("Modelled: which mechanism on h200_")
        assert {subject.split(",")[0] for subject, _ in finding.sentences} == {"full", "causal_document"}


def test_a_study_of_cpus_projects_nothing():
    one = study()
    on_cpu = one.model_copy(update={"measure": one.measure.model_copy(update={"device": "cpu"})})
    assert "projection" not in table_names(on_cpu) and "projection" not in figure_names(on_cpu)


def test_an_unknown_cluster_is_named():
    with pytest.raises(LongcaError, match="'h200' is not a cluster"):
        find_cluster("h200")
