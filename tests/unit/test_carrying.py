"""What carries messages: copies only where every rank is a GPU of one host that reaches all others."""

from types import SimpleNamespace

import pytest
import torch

from longca.measure.world.carrying import shared_memory


def _chosen(monkeypatch, local_size=2, seen=2, reaches=True, others=(True,), device="cuda:0"):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: seen)
    monkeypatch.setattr(torch.cuda, "can_device_access_peer", lambda own, other: reaches)
    place = SimpleNamespace(world_size=2, local_size=local_size)
    together = SimpleNamespace(gather=lambda own: [own, *others])
    return shared_memory(place, torch.device(device), together)


def test_copies_on_one_host_whose_gpus_reach_each_other(monkeypatch):
    from longca.parallel.peer_memory import PeerMemory

    assert _chosen(monkeypatch) is PeerMemory


@pytest.mark.parametrize(
    "otherwise",
    [{"local_size": 1}, {"seen": 1}, {"reaches": False}, {"others": (False,)}, {"device": "cpu"}],
    ids=["two_hosts", "sees_its_own_only", "no_peer_access", "not_so_on_another_rank", "cpu"],
)
def test_the_backend_of_the_world_elsewhere(monkeypatch, otherwise):
    assert _chosen(monkeypatch, **otherwise) is None
