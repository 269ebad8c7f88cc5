"""All a mechanism sends goes through here, started early, waited for late, and counted in bytes."""

from collections import Counter
from collections.abc import Iterable, Sequence

import torch
import torch.distributed as dist

# torch 2.13 gave these two new names, and warns at the old.
_all_gather = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
_reduce_scatter = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor

Addressed = Iterable[tuple[torch.Tensor, int]]


class Traffic:
    """Bytes a rank has sent, by purpose. Every rank receives as much where the shards are equal."""

    def __init__(self) -> None:
        self.sent: Counter[str] = Counter()

    @property
    def total(self) -> int:
        """Bytes sent for all purposes."""
        return self.sent.total()

    def clear(self) -> None:
        """Starts counting anew."""
        self.sent.clear()


class Moving:
    """Something on its way. Its tensors live, and must not be written, until `wait`."""

    def __init__(self, works: Sequence[dist.Work | None], tensors: Sequence[torch.Tensor] = ()) -> None:
        self._works = [work for work in works if work is not None]
        self._tensors = tensors
        self._unpacking: list[tuple[torch.Tensor, torch.Tensor]] = []

    def unpack(self, target: torch.Tensor, arrived: torch.Tensor) -> None:
        """Has `wait` copy what arrived to where it belongs."""
        self._unpacking.append((target, arrived))

    def wait(self) -> None:
        """Returns when it has arrived; on a GPU, makes the current stream wait.

        Raises:
            RuntimeError: a peer is gone, or the group's timeout has passed.
        """
        while self._works:
            self._works.pop().wait()
        self._tensors = ()
        while self._unpacking:
            target, arrived = self._unpacking.pop()
            target.copy_(arrived)


class Link:
    """A rank's place in one group of ranks; peers are named by their place in it."""

    def __init__(self, group: dist.ProcessGroup | None, size: int, index: int, traffic: Traffic) -> None:
        self._group = group
        self.size = size
        self.index = index
        self._traffic = traffic
        self._tags: Counter[tuple[bool, int]] = Counter()

    def move(self, sends: Addressed, receives: Addressed, purpose: str) -> Moving:
        """Sends contiguous tensors to peers and receives into others, as one batch.

        Sender and receiver name what passes between them in the same order; empty tensors are left out on
        both sides.
        """
        operations = []
        for tensor, peer in sends:
            if tensor.numel():
                operations.append(self._operation(dist.isend, tensor, peer))
                self._traffic.sent[purpose] += tensor.nbytes
        for tensor, peer in receives:
            if tensor.numel():
                operations.append(self._operation(dist.irecv, tensor, peer))
        if not operations:
            return Moving(())
        return Moving(dist.batch_isend_irecv(operations), [operation.tensor for operation in operations])

    def all_gather(self, part: torch.Tensor, whole: torch.Tensor, purpose: str) -> Moving:
        """whole [size * n, ...] from every peer's part [n, ...]."""
        self._traffic.sent[purpose] += part.nbytes * (self.size - 1)
        work = _all_gather(whole, part, group=self._group, async_op=True)
        return Moving([work], (whole, part))

    def reduce_scatter(self, whole: torch.Tensor, part: torch.Tensor, purpose: str) -> Moving:
        """part [n, ...]: the sum over peers of their whole [size * n, ...], of the n rows that are this rank's."""
        self._traffic.sent[purpose] += part.nbytes * (self.size - 1)
        work = _reduce_scatter(part, whole, group=self._group, async_op=True)
        return Moving([work], (whole, part))

    def _operation(self, what: object, tensor: torch.Tensor, peer: int) -> dist.P2POp:
        # NCCL pairs sends and receives by their order, gloo by a tag: this one is the order.
        sending = what is dist.isend
        tag = self._tags[sending, peer]
        self._tags[sending, peer] = (tag + 1) % (1 << 20)
        return dist.P2POp(what, tensor, group=self._group, tag=tag, group_peer=peer)  # type: ignore[arg-type]
