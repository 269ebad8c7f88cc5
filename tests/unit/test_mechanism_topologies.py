"""The topology of a mechanism on W ranks, told once: for a grid, a projection, and beside published figures."""

import pytest

from longca.arrangement import arrangements, topology_on
from longca.parallel.registry import MECHANISMS, SINGLE, load_mechanism
from longca.parallel.topology import Topology, default_windows, really
from longca.reporting.scale.projection import topologies
from longca.reporting.scale.published import beside_published
from longca.study.loading import check_study

SIZES = (2, 3, 4, 6, 8, 12, 16, 64, 96, 1024)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("world_size", SIZES)
def test_a_mechanism_is_for_the_topology_it_gets(mechanism: str, world_size: int) -> None:
    form = load_mechanism(mechanism)
    for ulysses in (u for u in range(1, world_size + 1) if world_size % u == 0):
        topology = topology_on(mechanism, world_size, ulysses)
        assert topology.world_size == world_size and form.reason_against(topology) is None
        if mechanism in ("usp", "loongtrain"):
            assert topology.ulysses == ulysses
            assert topology.windows == (default_windows(topology.ring) if mechanism == "loongtrain" else 1)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("world_size", SIZES)
def test_all_that_is_projected_is_every_topology_on_which_it_is_itself(
    mechanism: str, world_size: int
) -> None:
    form, found = load_mechanism(mechanism), topologies(mechanism, world_size)
    expected = [
        topology
        for ulysses in range(1, world_size + 1)
        for ring in range(1, world_size + 1)
        if ulysses * ring == world_size
        for windows in ({1, default_windows(ring)} if mechanism == "loongtrain" else {1})
        if form.reason_against(topology := Topology(ulysses, ring, windows)) is None
        and really(mechanism, topology) == mechanism
    ]
    assert list(found) == expected


def test_a_grid_without_topologies_of_its_own_fills_a_node_with_heads() -> None:
    config = {"mechanisms": "all", "kernels": ["segments"], "patterns": ["full"], "heads": ["64-8"]}
    grid = check_study(
        {
            "study": "tiny",
            "context_parallel": config
            | {"world_sizes": [1, 6, 16], "tokens_per_rank": ["8k"], "gpus_per_node": 4, "placement": "ring"},
        },
        "test",
    ).context_parallel[0]
    on = {
        (mechanism, size): [one.topology for one in arrangements(grid, mechanism, "full", size)]
        for mechanism in MECHANISMS
        for size in (6, 16)
    }
    assert on["ulysses", 16] == [Topology(16)] and on["ring_p2p", 16] == [Topology(ring=16)]
    assert on["ring_allgather", 6] == [Topology(ring=6)]
    # Of six ranks three fill a node of four.
    assert on["usp", 6] == [Topology(3, 2, placement="ring")]
    assert on["loongtrain", 16] == [Topology(4, 4, 2, "ring")]
    assert [one.topology for one in arrangements(grid, SINGLE, "full", 1)] == [Topology()]


def test_beside_published_figures_heads_fill_a_node_of_eight() -> None:
    found = {(one.anchor.method, one.anchor.gpus): one.topology for one in beside_published()}
    for (mechanism, gpus), topology in found.items():
        assert topology == topology_on(mechanism, gpus, min(gpus, 8))
    assert found["usp", 64] == Topology(8, 8) and found["loongtrain", 64] == Topology(8, 8, 2)
    assert found["ulysses", 32] == Topology(32) and found["ring_allgather", 16] == Topology(ring=16)
