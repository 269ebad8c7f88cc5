"""The process groups of a topology: made once, by all ranks together, and closed."""

from datetime import timedelta
from types import TracebackType

import torch.distributed as dist

from longca.errors import LongcaError
from longca.parallel.communication import Link, Traffic
from longca.parallel.mailbox_link import MailboxLink, MakeMemory
from longca.parallel.topology import Topology


class Groups:
    """This rank's links: ulysses; ring; and the ring's two levels, across its windows and inside its window.

    All ranks of the world make it together; it serves any number of mechanisms, one after the other, and ends
    with its `with` block or `close`. A level of one rank needs no group and has none.

    memory(group, bytes): where it is given, memory of that size that all ranks of a group can write to. What
    mechanisms send is then copied there (mailbox_link), and the backend of the world carries none of it.

    Raises:
        LongcaError: when the topology is for another world size.
    """

    def __init__(
        self, topology: Topology, timeout: timedelta | None = None, memory: MakeMemory | None = None
    ) -> None:
        world = dist.get_world_size()
        if topology.world_size != world:
            raise LongcaError(
                f"topology ulysses={topology.ulysses} ring={topology.ring}: is for {topology.world_size} ranks; "
                f"the world has {world}"
            )
        self.topology = topology
        self.rank = dist.get_rank()
        self.traffic = Traffic()
        self._timeout, self._memory = timeout, memory
        self.copies = memory is not None
        self._open: list[dist.ProcessGroup] = []
        members, windows = topology.window_size, topology.windows
        self.ulysses = self._link(
            [[topology.rank(u, r) for u in range(topology.ulysses)] for r in range(topology.ring)]
        )
        rings = [[topology.rank(u, r) for r in range(topology.ring)] for u in range(topology.ulysses)]
        self.ring = self._link(rings)
        if topology.double_ring:
            self.across = self._link([ring[m::members] for ring in rings for m in range(members)])
            self.window = self._link(
                [ring[n * members : (n + 1) * members] for ring in rings for n in range(windows)]
            )
        elif windows > 1:
            self.across, self.window = self.ring, self._alone()
        else:
            self.across, self.window = self._alone(), self.ring

    @property
    def mailbox_bytes(self) -> int:
        """Bytes that this rank holds for messages that are copies."""
        return sum(link.held_bytes for link in {self.ulysses, self.ring, self.across, self.window})

    def close(self) -> None:
        """Gives the groups back. What a peer still waits for from this rank ends with an error there."""
        while self._open:
            dist.destroy_process_group(self._open.pop())

    def __enter__(self) -> "Groups":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _alone(self) -> Link:
        return Link(None, 1, 0, self.traffic)

    def _link(self, groups: list[list[int]]) -> Link:
        if len(groups[0]) == 1:
            return self._alone()
        mine = self._alone()
        for ranks in groups:  # every rank takes part in making every group
            group = dist.new_group(ranks, timeout=self._timeout)
            if self.rank in ranks:
                self._open.append(group)
                place = len(ranks), ranks.index(self.rank)
                mine = Link(group, *place, self.traffic)
                if self._memory is not None:
                    mine = MailboxLink(group, *place, self.traffic, self._memory)
        return mine
