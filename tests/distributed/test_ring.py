"""The order of sends, waits and visits in rings, and the buffers they keep, seen from one rank; no processes."""

from functools import partial

import pytest
import torch

from longca.parallel.ring import Ring, circulate, circulate_back


class Recorded:
    """A link that sends nothing, and writes down when it is asked to and waited for."""

    def __init__(self, name, size, index, log):
        self.name, self.size, self.index, self.log = name, size, index, log
        self.received = set()

    def move(self, sends, receives, purpose):
        if sends or receives:
            self.log.append(f"{self.name} sends {purpose}" if sends else f"{self.name} receives {purpose}")
        assert {peer for _, peer in sends} <= {(self.index + 1) % self.size}
        assert {peer for _, peer in receives} <= {(self.index - 1) % self.size}
        assert all(tensor.is_contiguous() for tensor, _ in (*sends, *receives))
        self.received |= {(purpose, tensor.untyped_storage().data_ptr()) for tensor, _ in receives}
        return _Waited(self, purpose if sends or receives else None)


class _Waited:
    def __init__(self, link, purpose):
        self.link, self.purpose = link, purpose

    def wait(self):
        if self.purpose:
            self.link.log.append(f"{self.link.name} has {self.purpose}")


def kv(rows=3):
    return torch.zeros(2, rows, 4), torch.zeros(2, rows, 4)


def double_ring(log, windows=2, members=2, index=0):
    across = Recorded("across", windows, index // members, log)
    window = Recorded("window", members, index % members, log)
    return [Ring(across, stride=members), Ring(window)]


def test_a_send_starts_before_the_visit_it_goes_under():
    log = []
    ring = Ring(Recorded("ring", 3, 1, log))
    circulate([ring], [3, 3, 3], 1, kv(), lambda owner, _: log.append(f"visit {owner}"))
    step = ["ring sends kv", "visit {}", "ring has kv"]
    assert log == [text.format(owner) for owner in (1, 0) for text in step] + ["visit 2"]


def test_the_send_across_windows_starts_before_the_ring_inside():
    log = []
    circulate(double_ring(log), [3] * 4, 0, kv(), lambda owner, _: log.append(f"visit {owner}"))
    assert log == [
        "across sends kv",
        *("window sends kv", "visit 0", "window has kv", "visit 1"),
        "across has kv",
        *("window sends kv", "visit 2", "window has kv", "visit 3"),
    ]


def test_gradients_go_on_under_the_next_visit_and_the_owner_adds_last():
    log = []
    ring = Ring(Recorded("ring", 3, 0, log))
    meanwhile = partial(log.append, "meanwhile")
    circulate_back([ring], [3] * 3, 0, kv(), lambda owner, _: log.append(f"visit {owner}") or kv(), meanwhile)
    assert log == [
        *("ring sends kv", "visit 0", "ring has kv"),
        *("ring sends kv", "visit 2", "ring has kv"),
        *("ring sends dkv", "visit 1", "ring has dkv"),
        *("ring sends dkv", "meanwhile", "ring has dkv"),
    ]


def test_only_the_outermost_last_send_has_something_to_go_under():
    log = []
    circulate_back(double_ring(log), [3] * 4, 0, kv(), lambda *_: kv(), partial(log.append, "meanwhile"))
    assert log.count("meanwhile") == 1
    assert log[-3:] == ["across sends dkv", "meanwhile", "across has dkv"]


@pytest.mark.parametrize(("windows", "members"), [(1, 1), (1, 6), (6, 1), (2, 3), (3, 2), (4, 4)])
def test_every_owner_is_visited_once_with_one_send_less_than_ranks(windows, members):
    ranks = windows * members
    for index in range(ranks):
        for back in (False, True):
            log, seen = [], []
            rings = double_ring(log, windows, members, index)
            call = circulate_back if back else circulate
            call(rings, [3] * ranks, index, kv(), lambda owner, _, seen=seen: seen.append(owner))
            assert sorted(seen) == list(range(ranks))
            assert seen[0] == index
            for purpose in ("kv", "dkv") if back else ("kv",):
                across, window = (log.count(f"{name} sends {purpose}") for name in ("across", "window"))
                assert (across, window) == (windows - 1, windows * (members - 1))


@pytest.mark.parametrize("size", [2, 3, 5, 9])
def test_a_ring_keeps_two_receive_buffers_whatever_its_size(size):
    link = Recorded("ring", size, 0, [])
    circulate_back([Ring(link)], [3] * size, 0, kv(), lambda *_: None)
    for purpose in ("kv", "dkv"):
        assert len([place for place in link.received if place[0] == purpose]) <= 2


def test_what_arrives_has_the_rows_of_its_owner():
    rows, seen = [3, 0, 5, 1], {}
    circulate(
        double_ring([], index=2), rows, 2, kv(5), lambda owner, held: seen.update({owner: held[0].shape[1]})
    )
    assert seen == dict(enumerate(rows))


def test_the_sum_of_bfloat16_gradients_is_exact():
    link = Recorded("ring", 2, 0, [])
    k, v = (torch.zeros(1, 2, 4, dtype=torch.bfloat16) for _ in range(2))
    dk, dv = circulate_back([Ring(link)], [2, 2], 0, (k, v), lambda *_: (k, v))
    assert (dk.dtype, dv.dtype) == (torch.float32, torch.float32)
