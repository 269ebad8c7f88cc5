"""A link whose messages are copies into the receiver's memory."""

from collections.abc import Callable, Iterable, Sequence

import torch
import torch.distributed as dist

from longca.parallel.communication import Addressed, Link, Moving, PartAndWhole, Traffic
from longca.parallel.mailbox import Expected, Mailbox, Sent, SharedMemory

# Collective over the group: memory of so many bytes on each of its ranks.
MakeMemory = Callable[[dist.ProcessGroup, int], SharedMemory]
_ALIGNMENT = 512


class Delivery(Moving):
    """Messages on their way, and where each belongs; with `add`, added to what is there."""

    def __init__(
        self, sent: Sequence[Sent], expected: Sequence[tuple[Expected, Sequence[torch.Tensor]]], add: bool
    ) -> None:
        super().__init__(())
        self._sent, self._expected, self._add = sent, expected, add

    def wait(self) -> None:
        """Returns when all has arrived; on a GPU, makes the current stream wait, for a peer that is gone forever."""
        for message, targets in self._expected:
            message.wait()
            for target, room in zip(targets, message.rooms, strict=True):
                if self._add:
                    target.add_(room)
                else:
                    target.copy_(room)
            message.free()
        for sent in self._sent:
            sent.wait()
        self._sent = self._expected = ()


class MailboxLink(Link):
    """See Link. A purpose gets its memory when something is first sent for it, and anew only for more."""

    def __init__(
        self, group: dist.ProcessGroup, size: int, index: int, traffic: Traffic, memory: MakeMemory
    ) -> None:
        super().__init__(group, size, index, traffic)
        self._make = memory
        self._reserved: dict[str, tuple[int, int]] = {}
        self._boxes: dict[str, Mailbox] = {}
        self._peers = [peer for peer in range(size) if peer != index]

    @property
    def held_bytes(self) -> int:
        """See Link."""
        return sum(box.sources * box.capacity for box in self._boxes.values())

    def reserve(self, purpose: str, size: int, sources: int) -> None:
        """See Link."""
        capacity = -(-max(size, 1) // _ALIGNMENT) * _ALIGNMENT
        before = self._reserved.get(purpose, (0, 0))
        self._reserved[purpose] = max(capacity, before[0]), max(sources, before[1])

    def move(self, sends: Addressed, receives: Addressed, purpose: str) -> Moving:
        """See Link."""
        return self._deliver(sends, receives, purpose, add=False)

    def all_gather(self, pairs: Sequence[PartAndWhole], purpose: str) -> Moving:
        """See Link."""
        spread = [(part, whole.unflatten(1, (self.size, -1))) for part, whole in pairs]
        moving = self.move(
            [(part, peer) for peer in self._peers for part, _ in spread],
            [(whole[:, peer], peer) for peer in self._peers for _, whole in spread],
            purpose,
        )
        for part, whole in spread:
            whole[:, self.index].copy_(part)
        return moving

    def reduce_scatter(self, pairs: Sequence[PartAndWhole], purpose: str) -> Moving:
        """See Link."""
        spread = [(part, whole.unflatten(1, (self.size, -1))) for part, whole in pairs]
        for part, whole in spread:
            part.copy_(whole[:, self.index])
        return self._deliver(
            [(whole[:, peer], peer) for peer in self._peers for _, whole in spread],
            [(part, peer) for peer in self._peers for part, _ in spread],
            purpose,
            add=True,
        )

    def _deliver(self, sends: Addressed, receives: Addressed, purpose: str, add: bool) -> Moving:
        box = self._box(purpose)
        sent = []
        for peer, tensors in _by_peer(sends).items():
            sent.append(box.send([tensor.contiguous() for tensor in tensors], peer))
            self._traffic.sent[purpose] += sum(tensor.nbytes for tensor in tensors)
        expected = [(box.expect(targets, peer), targets) for peer, targets in _by_peer(receives).items()]
        return Delivery(sent, expected, add)

    def _box(self, purpose: str) -> Mailbox:
        """Collective where it is to be made: all ranks of a group send for a purpose in turn, be it nothing."""
        capacity, sources = self._reserved[purpose]
        box = self._boxes.get(purpose)
        if box is None or (box.capacity, box.sources) != (capacity, sources):
            assert self._group is not None
            memory = self._make(self._group, Mailbox.bytes_needed(self.size, capacity, sources))
            box = self._boxes[purpose] = Mailbox(memory, self.size, self.index, capacity, sources)
        return box


def _by_peer(addressed: Iterable[tuple[torch.Tensor, int]]) -> dict[int, list[torch.Tensor]]:
    """The tensors that are not empty, of each peer that has any."""
    of: dict[int, list[torch.Tensor]] = {}
    for tensor, peer in addressed:
        if tensor.numel():
            of.setdefault(peer, []).append(tensor)
    return of
