"""A world whose ranks are all processes of this machine, started here."""

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from multiprocessing.connection import wait
from pathlib import Path

from longca.measure.world.place import Meeting, Place
from longca.measure.world.rank_process import RankProcess
from longca.measure.world.world import RankLostError, World


class LocalWorld(World):
    """Every rank a process of its own, a GPU of its own where the device is one."""

    def __init__(self, place: Place) -> None:
        """`place`: of rank 0; the others' are made from it."""
        super().__init__(place.world_size)
        self._place, self._ranks = place, list[RankProcess]()
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def close(self) -> None:
        """See World."""
        for rank in self._ranks:
            rank.kill()
        for rank in self._ranks:
            rank.close()
        self._ranks = []
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def _start(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="longca-world-")
        meeting = Meeting(file=str(Path(self._folder.name) / "store"))
        for rank in range(self.world_size):
            place = replace(self._place, rank=rank, local_rank=rank, meeting=meeting)
            self._ranks.append(RankProcess(place))

    def _send(self, line: str) -> None:
        for rank in self._ranks:
            rank.send(line)

    def _arrived(self, missing: set[int], longest_s: float) -> Mapping[int, str | RankLostError]:
        asked = [rank for rank in self._ranks if rank.rank in missing]
        handles = {handle: rank for rank in asked for handle in (rank.connection, rank.sentinel)}
        ready = {handles[handle].rank for handle in wait(list(handles), longest_s)}  # type: ignore[index]
        return {rank.rank: rank.receive() for rank in asked if rank.rank in ready}
