"""Messages as copies into the receiver's memory, for ranks that can all write to each other's.

On the GPUs of one host copy engines carry them. The kernels of a collective library take multiprocessors instead, and a
persistent attention kernel launched beside them waits with as many of its programs until they are gone: for the whole
transfer, and for the other rank's attention where that rank has not yet begun to send.
"""

from collections import deque
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import torch

_FLAG_BYTES = 4


class SharedMemory(Protocol):
    """As many bytes on every rank of a group, flags that begin at 0 first; each rank writes to all of them.

    The methods take effect in the order of the current stream; on a CPU they have taken effect when they return.
    """

    def room(self, rank: int, begin: int, shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        """A view of a rank's memory from byte `begin` on."""

    def raise_flag(self, rank: int, flag: int, value: int) -> None:
        """Writes a flag of a rank, after all that was written before."""

    def wait_flag(self, flag: int, value: int) -> None:
        """Goes on when this rank's own flag is at least `value`."""

    def beside(self, rank: int) -> AbstractContextManager[Any]:
        """What is begun in it follows what was begun before, and goes on beside what is begun after.

        Gives an object whose `wait` makes the current stream wait for it.
        """


class Cursor:
    """Where the messages from one rank to another lie in `capacity` bytes. Both ranks keep one, and these agree."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._position = self._number = self._outstanding = 0
        self._recent: deque[tuple[int, int, int]] = deque()

    def take(self, size: int) -> tuple[int, int, int]:
        """Begin of a message, 0 where nothing is on its way; its number, from 1 on; the last that it lies over, or 0.

        What it lies over must have been taken out before it is written.
        """
        assert size <= self._capacity, f"a message of {size} bytes; {self._capacity} are reserved"
        if not self._outstanding or self._position + size > self._capacity:
            self._position = 0
        begin, end = self._position, self._position + size
        over = max((number for b, e, number in self._recent if b < end and begin < e), default=0)
        while self._recent and self._recent[0][2] <= over:
            self._recent.popleft()
        self._number += 1
        self._recent.append((begin, end, self._number))
        self._position = end
        self._outstanding += 1
        return begin, self._number, over

    def release(self) -> None:
        """A message was waited for; they are in the order in which they were taken."""
        self._outstanding -= 1


class Mailbox:
    """One purpose's messages among the ranks of a group: `capacity` bytes for each of `sources` ranks before this one.

    memory: of `bytes_needed`. The message from s to r lies in r's memory, in place (r - s) mod size - 1.
    """

    def __init__(self, memory: SharedMemory, size: int, index: int, capacity: int, sources: int) -> None:
        self._memory, self._size, self._index = memory, size, index
        self.capacity, self.sources = capacity, sources
        self._inward = [Cursor(capacity) for _ in range(sources)]
        self._outward = [Cursor(capacity) for _ in range(sources)]

    @staticmethod
    def bytes_needed(size: int, capacity: int, sources: int) -> int:
        """Of the memory a rank gives: two flags for each other rank, and the messages."""
        return _flag_bytes(size) + sources * capacity

    def send(self, tensors: Sequence[torch.Tensor], peer: int) -> "Sent":
        """Starts a message; it is made of contiguous tensors, which must stay as they are until it was waited for."""
        place = (peer - self._index) % self._size - 1
        cursor, memory = self._outward[place], self._memory
        begin, number, over = cursor.take(sum(tensor.nbytes for tensor in tensors))
        with memory.beside(peer) as copying:
            if over:
                memory.wait_flag(self._size - 1 + place, over)
            for tensor, room in zip(tensors, self._rooms(peer, place, begin, tensors), strict=True):
                room.copy_(tensor, non_blocking=True)
            memory.raise_flag(peer, place, number)
        return Sent(cursor, copying, tensors)

    def expect(self, like: Sequence[torch.Tensor], peer: int) -> "Expected":
        """The next message from a peer, of tensors of these shapes."""
        place = (self._index - peer) % self._size - 1
        begin, number, _ = self._inward[place].take(sum(tensor.nbytes for tensor in like))
        return Expected(self, peer, place, number, self._rooms(self._index, place, begin, like))

    def arrive(self, place: int, number: int) -> None:
        """Waits for a message."""
        self._memory.wait_flag(place, number)

    def free(self, peer: int, place: int, number: int) -> None:
        """Lets a peer write over a message."""
        self._inward[place].release()
        self._memory.raise_flag(peer, self._size - 1 + place, number)

    def _rooms(self, rank: int, place: int, begin: int, like: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        begin += _flag_bytes(self._size) + place * self.capacity
        rooms = []
        for tensor in like:
            rooms.append(self._memory.room(rank, begin, tensor.shape, tensor.dtype))
            begin += tensor.nbytes
        return rooms


class Sent:
    """A message on its way to a peer."""

    def __init__(self, cursor: Cursor, copying: Any, tensors: Sequence[torch.Tensor]) -> None:
        self._cursor, self._copying, self._tensors = cursor, copying, tensors

    def wait(self) -> None:
        """Its tensors may be written again."""
        self._copying.wait()
        self._cursor.release()
        self._tensors = ()


class Expected:
    """A message from a peer."""

    def __init__(
        self, box: Mailbox, peer: int, place: int, number: int, rooms: Sequence[torch.Tensor]
    ) -> None:
        self._box, self._of, self.rooms = box, (peer, place, number), rooms

    def wait(self) -> None:
        """`rooms` hold what was sent."""
        self._box.arrive(*self._of[1:])

    def free(self) -> None:
        """They have been read."""
        self._box.free(*self._of)


def _flag_bytes(size: int) -> int:
    """Two flags for each other rank, up to a whole number of 512 bytes: messages begin aligned."""
    return -(-2 * (size - 1) * _FLAG_BYTES // 512) * 512
