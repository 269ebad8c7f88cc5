"""Where one rank stands: what a process needs to know to become it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch.distributed as dist


@dataclass(frozen=True)
class Meeting:
    """Where the ranks of one world meet: a file on one machine, else a store that listens at host:port.

    name: of the world among those that meet at the same store, one after the other.
    """

    file: str | None = None
    host: str = ""
    port: int = 0
    name: str = "world"

    def open(self, world_size: int) -> "dist.Store":
        """The store, as a rank sees it."""
        import torch.distributed as dist

        if self.file is not None:
            return dist.FileStore(self.file, world_size)
        return dist.PrefixStore(self.name, dist.TCPStore(self.host, self.port, is_master=False))


@dataclass(frozen=True)
class Place:
    """A rank of a world: its kernel, its device (auto, cpu, cuda) and CPU threads, and where the ranks meet.

    local_rank of local_size: its place among the ranks of its machine. launched_elsewhere: by torchrun or srun.
    oracles: a folder that cases share (measure.truth). path, variables: where the kernel's library lies
    (measure.sites). log: the file that its output goes to.
    """

    kernel: str
    device: str
    threads: int
    rank: int
    world_size: int
    local_rank: int
    local_size: int
    meeting: Meeting
    oracles: str
    launched_elsewhere: bool = False
    path: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    log: str = ""


def read_place(told: dict[str, Any]) -> Place:
    """The place that `dataclasses.asdict` made `told` of, JSON in between."""
    return Place(**told | {"meeting": Meeting(**told["meeting"]), "path": tuple(told["path"])})
