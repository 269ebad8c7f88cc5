"""The cost model's calls of the local kernel against the mechanisms' own; a mechanism's topology against its form."""

from typing import Any

import pytest
import torch

from longca.flops import attention_flops
from longca.masks.mask import draw_mask
from longca.parallel.clusters import Cluster, Link
from longca.parallel.communication import Link as RankLink
from longca.parallel.communication import Traffic
from longca.parallel.cost_model import KernelCost, Workload, calls, predict
from longca.parallel.gather_attention import GatherAttention
from longca.parallel.local import Setting
from longca.parallel.mechanism import Mechanism
from longca.parallel.registry import MECHANISMS, SINGLE, load_mechanism
from longca.parallel.sharding import shard_sequence
from longca.parallel.topology import Topology
from longca.reporting.scale.points import Point

SEQLEN = 64
CLUSTER = Cluster("plain", "", 4, Link(1.0, 0.0, False), Link(0.1, 0.0, True))


class Planned:
    """A local kernel that plans everything and computes nothing."""

    def plan(self, *shape: Any) -> object:
        return shape

    def forward(self, *tensors: Any) -> Any:
        raise NotImplementedError

    backward = forward


class Ranks:
    """The links of rank 0, over which nothing is sent."""

    def __init__(self, topology: Topology) -> None:
        self.topology, self.rank, self.traffic = topology, 0, Traffic()
        self.ulysses, self.ring = self._link(topology.ulysses), self._link(topology.ring)
        self.across, self.window = self._link(topology.windows), self._link(topology.window_size)

    def _link(self, size: int) -> RankLink:
        return RankLink(None, size, 0, self.traffic)


def setting(topology: Topology, q_heads: int, kv_heads: int) -> Setting:
    slices = draw_mask("full", SEQLEN).slices
    sharding = shard_sequence("contiguous", topology.ring, SEQLEN, slices)
    return Setting(slices, sharding, q_heads, kv_heads, 8, torch.float32, torch.device("cpu"), Planned())


@pytest.mark.parametrize("kv_heads", range(1, 65))
def test_a_gather_has_the_chunks_that_its_heads_divide_into(kv_heads: int) -> None:
    ring = Topology(ring=4)
    own = GatherAttention(Ranks(ring).ring, setting(ring, 2 * kv_heads, kv_heads))
    assert calls("ring_allgather", ring, 1, kv_heads) == len(own.calls)


def test_seven_two_and_one_heads_are_no_four_chunks() -> None:
    found = {kv_heads: calls("ring_allgather", Topology(ring=2), 1, kv_heads) for kv_heads in (8, 7, 6, 2, 1)}
    assert found == {8: 4, 7: 1, 6: 3, 2: 2, 1: 1}


@pytest.mark.parametrize(("q_heads", "kv_heads"), [(64, 8), (28, 7), (16, 2), (8, 8), (12, 3), (8, 1)])
@pytest.mark.parametrize("mechanism", [*MECHANISMS, SINGLE])
def test_every_mechanism_makes_the_calls_that_are_counted(
    mechanism: str, q_heads: int, kv_heads: int
) -> None:
    tried = 0
    for topology in (
        Topology(),
        Topology(4),
        Topology(ring=4),
        Topology(2, 2),
        Topology(1, 4, 2),
        Topology(2, 4, 2),
    ):
        for chunks in (1, 2, 4):
            one = _mechanism(mechanism, topology, q_heads, kv_heads, chunks)
            if one is None or (topology.world_size == 1) != (mechanism == SINGLE):
                continue
            tried += 1
            assert calls(mechanism, topology, chunks, kv_heads) == len(one.calls), (topology, chunks)
            assert _point(mechanism, topology, q_heads, kv_heads, chunks).calls == len(one.calls)
    assert tried


def _mechanism(name: str, topology: Topology, q_heads: int, kv_heads: int, chunks: int) -> Mechanism | None:
    """A mechanism as rank 0 makes it; None where it refuses topology, heads or chunks."""
    try:
        own = setting(topology, q_heads, kv_heads)
        return Mechanism(load_mechanism(name), Ranks(topology), own, chunks)  # type: ignore[arg-type]
    except Exception as error:
        assert type(error).__name__ in ("LongcaError", "UnsupportedError"), error
        return None


def _point(mechanism: str, topology: Topology, q_heads: int, kv_heads: int, chunks: int) -> Point:
    load = Workload(SEQLEN**2, SEQLEN, q_heads, kv_heads, 8, 4, "forward")
    return Point(mechanism, topology, chunks, "segments", "full", load, 1.0, 1.0, 1.0)


@pytest.mark.parametrize(("kv_heads", "chunks"), [(8, 4), (6, 3), (2, 2), (7, 1), (1, 1)])
def test_what_is_modelled_of_a_gather_has_as_many_chunks(kv_heads: int, chunks: int) -> None:
    ring = Topology(ring=4)
    load = Workload(100.0, 64, 56, kv_heads, 4, 2, "forward")
    # A call takes a second, the FLOPs next to nothing: the whole is the calls.
    cost = predict("ring_allgather", ring, load, KernelCost(1e30, 1.0), CLUSTER)
    assert cost.computation_s == pytest.approx(chunks)
    # Computation that hides all but the first gather, and no constant.
    slow = predict("ring_allgather", ring, load, KernelCost(1e-6), CLUSTER)
    assert attention_flops(load.area, load.q_heads, load.head_dim, "forward") / 4 / 1e-6 == pytest.approx(
        slow.computation_s
    )
    assert slow.exposed_s == pytest.approx(slow.communication_s / chunks, rel=1e-3)
