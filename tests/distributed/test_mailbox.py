"""Messages as copies into the receiver's memory: mechanisms over memory that processes share; where messages lie."""

import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from parallel_cases import Case, run_case
from parallel_grid import FOUR, TWO, WINDOWED
from worlds import run_world

from longca.parallel.groups import Groups
from longca.parallel.mailbox import Cursor
from longca.parallel.topology import Topology
from longca.parallel.volume import sent_bytes


class FileMemory:
    """A SharedMemory of the ranks of one machine: files that all of them map."""

    def __init__(self, group, size):
        self.rank = dist.get_rank(group)
        folder = [tempfile.mkdtemp()] if self.rank == 0 else [None]
        dist.broadcast_object_list(folder, dist.get_global_rank(group, 0), group=group)
        own = Path(folder[0]) / str(self.rank)
        own.write_bytes(bytes(size))
        dist.barrier(group)
        self.of = [
            torch.from_file(str(own.with_name(str(rank))), shared=True, size=size, dtype=torch.uint8)
            for rank in range(dist.get_world_size(group))
        ]
        dist.barrier(group)
        if self.rank == 0:
            shutil.rmtree(folder[0])  # what is mapped stays

    def room(self, rank, begin, shape, dtype):
        size = torch.Size(shape).numel() * dtype.itemsize
        return self.of[rank][begin : begin + size].view(dtype).view(shape)

    def raise_flag(self, rank, flag, value):
        self.of[rank].view(torch.int32)[flag] = value

    def wait_flag(self, flag, value):
        while self.of[self.rank].view(torch.int32)[flag] < value:
            os.sched_yield()

    @contextmanager
    def beside(self, rank):
        yield self

    def wait(self):
        """On a CPU a copy is done when it returns."""


GQA = {"heads": (8, 2)}
CASES = {
    2: [
        Case(mechanism, topology, sharding, pattern, heads=(8, 4))
        for mechanism, topology in TWO
        for sharding, pattern in (
            ("balanced", "causal_document"),
            ("zigzag", "causal"),
            ("contiguous", "gaps"),
        )
    ]
    + [
        Case("ulysses", Topology(2), "contiguous", "causal", heads=(28, 7), seqlen=33),
        Case("ulysses", Topology(2), "contiguous", "causal", heads=(8, 8), head_chunks=4),
        Case("ring_p2p", Topology(ring=2), "zigzag", "full", seqlen=1),
        Case("ring_p2p", Topology(ring=2), "zigzag", "causal", dtype="float64"),
    ],
    4: [Case(*which, "document_zigzag", "causal_document", **GQA) for which in FOUR]
    + [
        Case("loongtrain", WINDOWED, "balanced", "full", **GQA),
        Case("usp", Topology(2, 2), "zigzag", "causal", heads=(8, 4), head_chunks=2),
    ]
    + [Case(*which, "contiguous", "causal", seqlen=64, **GQA) for which in FOUR],
}


def run_over_files(rank, cases):
    """Each case twice: the second finds mailboxes as the first has left them."""
    results = {}
    for case in cases:
        with Groups(case.topology, memory=FileMemory) as groups:
            results[case.name] = [run_case(case, groups) for _ in range(2)]
    return results


@pytest.fixture(scope="module", params=CASES)
def world(request, tmp_path_factory):
    size = request.param
    return CASES[size], run_world(size, run_over_files, CASES[size], tmp_path_factory.mktemp("world"))


def test_mechanisms_agree_with_one_device(world):
    cases, ranks = world
    for case in cases:
        for rank in ranks:
            for once in rank[case.name]:
                for name, error in once["errors"].items():
                    assert error < 5e-6, (case.name, name)


def test_what_is_sent_is_what_the_formula_says(world):
    cases, ranks = world
    dividing = [case for case in cases if case.seqlen == 16 * case.topology.world_size]
    for case in dividing:
        for pass_ in ("forward", "backward"):
            want = sent_bytes(case.topology, 16, *case.heads, 16, 4, pass_)
            assert [rank[case.name][0]["sent"][pass_] for rank in ranks] == [want] * len(ranks)


def test_messages_on_their_way_do_not_overlap():
    cursor = Cursor(100)
    assert [cursor.take(30)[0] for _ in range(3)] == [0, 30, 60]


def test_a_message_waits_for_the_last_of_those_it_lies_over():
    cursor = Cursor(100)
    for size in (40, 40):
        cursor.take(size)
    cursor.release()
    # Past the end it begins anew, over the first; then over the second as well.
    assert cursor.take(30) == (0, 3, 1)
    cursor.release()
    assert cursor.take(60) == (30, 4, 2)


def test_with_nothing_on_its_way_a_message_begins_at_the_front():
    cursor = Cursor(100)
    cursor.take(60)
    cursor.release()
    assert cursor.take(100) == (0, 2, 1)


def test_more_than_is_reserved_is_refused():
    with pytest.raises(AssertionError, match="101 bytes; 100 are reserved"):
        Cursor(100).take(101)
