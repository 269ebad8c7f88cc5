"""Arrangements of ranks, what they degenerate to, heads that divide or not; no processes."""

import pytest

from longca.errors import LongcaError
from longca.kernels.interface import UnsupportedError
from longca.parallel.form import Form
from longca.parallel.head_exchange import replicated_kv_heads
from longca.parallel.registry import MECHANISMS, load_mechanism
from longca.parallel.topology import Topology, default_windows, really


def test_placement_says_which_group_is_contiguous():
    inside = Topology(ulysses=2, ring=3, placement="ulysses")
    assert [inside.coordinates(rank) for rank in range(6)] == [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2)]
    across = Topology(ulysses=2, ring=3, placement="ring")
    assert [across.coordinates(rank) for rank in range(6)] == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]
    for topology in (inside, across):
        assert [topology.rank(*topology.coordinates(rank)) for rank in range(6)] == list(range(6))


@pytest.mark.parametrize(
    ("mechanism", "topology", "name"),
    [
        ("usp", Topology(4, 2), "usp"),
        ("usp", Topology(8, 1), "ulysses"),
        ("usp", Topology(1, 8), "ring_p2p"),
        ("loongtrain", Topology(2, 4, 2), "loongtrain"),
        ("loongtrain", Topology(1, 4, 2), "loongtrain"),
        ("loongtrain", Topology(2, 4, 1), "usp"),
        ("loongtrain", Topology(2, 4, 4), "usp"),
        ("loongtrain", Topology(8, 1), "ulysses"),
        ("loongtrain", Topology(1, 3, 3), "ring_p2p"),
        ("ring_allgather", Topology(1, 2), "ring_allgather"),
        ("ulysses", Topology(1, 1), "single"),
        ("loongtrain", Topology(1, 1), "single"),
    ],
)
def test_a_topology_that_degenerates_is_named(mechanism, topology, name):
    assert really(mechanism, topology) == name


def test_default_windows():
    assert [default_windows(ring) for ring in (1, 2, 3, 4, 6, 8, 12, 13, 16, 36)] == [
        1, 1, 1, 2, 2, 2, 3, 1, 4, 6,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("heads", "ulysses", "replicated"),
    [
        ((64, 8), 8, 8),
        ((64, 8), 16, 16),
        ((28, 7), 2, 14),
        ((64, 64), 64, 64),
        ((6, 2), 3, 6),
        ((4, 2), 1, 2),
    ],
)
def test_kv_heads_are_repeated_until_they_divide(heads, ulysses, replicated):
    assert replicated_kv_heads(*heads, ulysses) == replicated


@pytest.mark.parametrize(("heads", "ulysses"), [((4, 2), 3), ((64, 8), 128), ((28, 7), 8)])
def test_query_heads_that_do_not_divide_are_unsupported_with_the_reason(heads, ulysses):
    with pytest.raises(
        UnsupportedError, match=f"{heads[0]} query heads do not divide over {ulysses} Ulysses ranks"
    ):
        replicated_kv_heads(*heads, ulysses)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"ulysses": 0}, "ulysses=0: must be at least 1"),
        ({"ring": 4, "windows": 3}, "windows=3: must divide ring=4"),
        ({"placement": "node"}, "placement: 'node' is not a placement; allowed: ring, ulysses"),
    ],
)
def test_mistakes_are_named(wrong, says):
    with pytest.raises(LongcaError, match=says):
        Topology(**wrong)


def test_each_mechanism_takes_its_own_topologies():
    refused = {
        name: [
            load_mechanism(name).reason_against(topology) is not None
            for topology in (Topology(4, 1), Topology(1, 4), Topology(2, 2), Topology(1, 4, 2))
        ]
        for name in MECHANISMS
    }
    assert refused == {
        "ulysses": [False, True, True, True],
        "ring_p2p": [True, False, True, True],
        "ring_allgather": [True, False, True, True],
        "usp": [False, False, False, True],
        "loongtrain": [False, False, False, False],
    }


def test_the_registry_knows_its_mechanisms_and_no_other():
    assert all(isinstance(load_mechanism(name), Form) for name in MECHANISMS)
    with pytest.raises(LongcaError, match="did you mean 'ulysses'"):
        load_mechanism("ulyses")
