"""What ranks say to each other beside what is timed: over a group of its own, on the host."""

from datetime import timedelta
from typing import Any

import torch.distributed as dist

# The world that asked ends a rank that hangs, within the case's own time: no group gives up before.
PATIENCE = timedelta(days=1)


class Together:
    """Agreement of all ranks. Made and called by all of them in the same order."""

    def __init__(self) -> None:
        self._group = dist.new_group(backend="gloo", timeout=PATIENCE)
        self.rank, self.world_size = dist.get_rank(), dist.get_world_size()

    def gather(self, value: Any) -> list[Any]:
        """Every rank's value, by rank, on every rank."""
        values: list[Any] = [None] * self.world_size
        dist.all_gather_object(values, value, group=self._group)
        return values

    def most(self, value: float) -> float:
        """The greatest of the ranks' values."""
        return max(self.gather(value))

    def barrier(self) -> None:
        """Returns on all ranks once all have come here."""
        dist.barrier(group=self._group)
