"""All a mechanism sends goes through here, started early, waited for late, and counted in bytes."""

from collections import Counter
from collections.abc import Iterable, Sequence

import torch
import torch.distributed as dist

Addressed = Iterable[tuple[torch.Tensor, int]]
# (part, whole): a rank's own rows of some heads [heads, n, D], and all ranks' [heads, size * n, D], rank after rank.
PartAndWhole = tuple[torch.Tensor, torch.Tensor]


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
    """Something on its way. Its tensors live, and must not be written, until `wait`.

    unpacking: (target, arrived), what is copied to where it belongs once it is there.
    """

    def __init__(
        self,
        works: Sequence[dist.Work | None],
        tensors: Sequence[torch.Tensor] = (),
        unpacking: Sequence[tuple[torch.Tensor, torch.Tensor]] = (),
    ) -> None:
        self._works = [work for work in works if work is not None]
        self._tensors, self._unpacking = tensors, unpacking

    def wait(self) -> None:
        """Returns when it has arrived; on a GPU, makes the current stream wait.

        Raises:
            RuntimeError: a peer is gone, or the group's timeout has passed.
        """
        while self._works:
            self._works.pop().wait()
        for target, arrived in self._unpacking:
            target.copy_(arrived)
        self._tensors = self._unpacking = ()


class Link:
    """A rank's place in one group of ranks; peers are named by their place in it."""

    def __init__(self, group: dist.ProcessGroup | None, size: int, index: int, traffic: Traffic) -> None:
        self._group = group
        self.size = size
        self.index = index
        self._traffic = traffic
        self._tags: Counter[tuple[bool, int]] = Counter()

    @property
    def held_bytes(self) -> int:
        """Bytes that messages of peers may take, beside the tensors that they are for."""
        return 0

    def reserve(self, purpose: str, size: int, sources: int) -> None:
        """Says that messages of `purpose`, from each of the `sources` ranks before this one, take up to `size` bytes.

        Said alike by all ranks of the group, before anything is sent for the purpose. Here nothing is prepared.
        """

    def move(self, sends: Addressed, receives: Addressed, purpose: str) -> Moving:
        """Sends tensors to peers and receives into others, as one batch; those that are not contiguous are packed.

        Sender and receiver name what passes between them in the same order; empty tensors are left out on
        both sides.
        """
        operations, unpacking = [], []
        for tensor, peer in sends:
            if tensor.numel():
                operations.append(self._operation(dist.isend, tensor.contiguous(), peer))
                self._traffic.sent[purpose] += tensor.nbytes
        for tensor, peer in receives:
            if tensor.numel():
                room = tensor
                if not tensor.is_contiguous():
                    room = torch.empty_like(tensor, memory_format=torch.contiguous_format)
                    unpacking.append((tensor, room))
                operations.append(self._operation(dist.irecv, room, peer))
        if not operations:
            return Moving(())
        tensors = [operation.tensor for operation in operations]
        return Moving(dist.batch_isend_irecv(operations), tensors, unpacking)

    def all_gather(self, pairs: Sequence[PartAndWhole], purpose: str) -> Moving:
        """Every whole from every peer's part, all heads of all pairs in one launch."""
        return self._heads("allgather_into_tensor_coalesced", pairs, purpose)

    def reduce_scatter(self, pairs: Sequence[PartAndWhole], purpose: str) -> Moving:
        """Every part: the sum over peers of the rows of their wholes that are this rank's."""
        return self._heads("reduce_scatter_tensor_coalesced", pairs, purpose)

    def _heads(self, collective: str, pairs: Sequence[PartAndWhole], purpose: str) -> Moving:
        """A head at a time, since the rows of a rank are one block of memory only within a head."""
        assert self._group is not None
        self._traffic.sent[purpose] += sum(part.nbytes for part, _ in pairs) * (self.size - 1)
        parts = [head for part, _ in pairs for head in part.unbind()]
        wholes = [head for _, whole in pairs for head in whole.unbind()]
        receiving, sending = (wholes, parts) if collective.startswith("allgather") else (parts, wholes)
        return Moving([getattr(self._group, collective)(receiving, sending)], (*parts, *wholes))

    def _operation(self, what: object, tensor: torch.Tensor, peer: int) -> dist.P2POp:
        # NCCL pairs sends and receives by their order, gloo by a tag: this one is the order.
        sending = what is dist.isend
        tag = self._tags[sending, peer]
        self._tags[sending, peer] = (tag + 1) % (1 << 20)
        return dist.P2POp(what, tensor, group=self._group, tag=tag, group_peer=peer)  # type: ignore[arg-type]
