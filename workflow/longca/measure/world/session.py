"""Sessions over ranks: a world that is kept from case to case, and started again after it was lost."""

import os
import tempfile
import time
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any

from longca.cases import Case
from longca.errors import LongcaError
from longca.masks.blocks import BlockMap
from longca.masks.mask import Mask
from longca.measure.budget import NO_LIMIT, Budget
from longca.measure.outcome import to_record
from longca.measure.processes import run_folder
from longca.measure.protocol import Loaded, Outcome, Request
from longca.measure.record import Record
from longca.measure.sites import kernel_site
from longca.measure.world.fingerprint import measured_fingerprint
from longca.measure.world.joined_world import Conductor, JoinedWorld
from longca.measure.world.local_world import LocalWorld
from longca.measure.world.place import Meeting, Place
from longca.measure.world.world import World, WorldLostError
from longca.study.model import Protocol

# Importing torch and a kernel's library on every rank from a cold, shared file system takes minutes.
_START_TIMEOUT_S = 600.0


@dataclass(frozen=True)
class Opened:
    """What the first world said of itself: environment, and its kernel's library."""

    environment: dict[str, Any]
    loaded: Loaded


class KeptWorld:
    """A kernel's ranks over many cases and mechanisms. Starts with the first question; ends with its `with` block."""

    def __init__(
        self,
        kernel: str,
        world_size: int,
        protocol: Protocol,
        budget: Budget = NO_LIMIT,
        conductor: Conductor | None = None,
    ) -> None:
        """`conductor`: of the world that a launcher started; None: the ranks are processes of this machine."""
        self.kernel, self.world_size, self.protocol = kernel, world_size, protocol
        self.importing_s = 0.0
        self._budget, self._conductor, self._asked = budget, conductor, 0
        self._world: World | None = None
        self._oracles = tempfile.TemporaryDirectory(prefix="longca-oracles-")

    @cached_property
    def opened(self) -> Opened:
        """What the ranks say of where they run. Raises LongcaError where they do not start."""
        return self._start()

    def ask(self, case: Case, mask_file: Path, timeout_s: float) -> Outcome:
        """What came of a case; after a failure the next one has new ranks."""
        if self.opened.loaded.serves is False:
            return Outcome(status="missing", reason=self.opened.loaded.missing)
        if self._world is None:
            self._start()
        assert self._world is not None
        self._asked += 1
        request = Request(
            number=self._asked,
            gradients=True,
            case=asdict(case),
            mask_file=str(mask_file.absolute()),
            warmups=self.protocol.warmups,
            repetitions=self.protocol.repetitions,
            sampling_s=self.protocol.sampling_time,
        )
        try:
            return self._world.measure(request, timeout_s)
        except WorldLostError as error:
            self._world = None
            return Outcome(status=error.status, reason=str(error))

    def _start(self) -> Opened:
        start = time.monotonic()
        world: World = LocalWorld(self._place())
        if self._conductor is not None:
            world = JoinedWorld(self._place(), self._conductor)
        try:
            ready, loaded = world.start(self._budget.left(_START_TIMEOUT_S))
        except WorldLostError as error:
            self._budget.left()  # where that is what ended it
            raise LongcaError(
                f"no world of {self.world_size} ranks starts on device {self.protocol.device}: {error}"
            ) from error
        self._world = world
        self.protocol.check_device(ready.environment["device"])
        self.importing_s += time.monotonic() - start
        return Opened(ready.environment | {"versions": loaded.versions}, loaded)

    def _place(self) -> Place:
        site = kernel_site(self.kernel)
        return Place(
            kernel=self.kernel,
            device=self.protocol.device,
            # Ranks of a CPU share its cores: one thread each unless the study says otherwise.
            threads=self.protocol.threads or 1,
            rank=0,
            world_size=self.world_size,
            local_rank=0,
            local_size=self.world_size,
            meeting=Meeting(),
            oracles=str(run_folder() or self._oracles.name),
            launched_elsewhere=self._conductor is not None,
            path=tuple(map(str, site.path)),
            variables=site.variables if self._conductor else _network_variables() | site.variables,
        )

    def close(self) -> None:
        """End the ranks, if they run."""
        if self._world is not None:
            self._world.close()
            self._world = None
        self._oracles.cleanup()

    def __enter__(self) -> "KeptWorld":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


class WorldSession:
    """A mechanism's share of a kept world: what a series is measured with, as a KernelSession is for one process."""

    def __init__(self, world: KeptWorld, mechanism: str) -> None:
        self._world, self.mechanism = world, mechanism
        self.protocol = world.protocol

    def take_importing_s(self) -> float:
        """Seconds waited, since this was last asked, for ranks to start and to import their library."""
        taken, self._world.importing_s = self._world.importing_s, 0.0
        return taken

    @property
    def environment(self) -> dict[str, Any]:
        """What every record of this session says of where it was measured."""
        return self._world.opened.environment

    @cached_property
    def fingerprint(self) -> str:
        """Of the mechanism's and the kernel's source and the versions really imported."""
        return measured_fingerprint(self.mechanism, self._world.kernel, self._world.opened.loaded.versions)

    def measure(
        self, case: Case, mask: Mask | BlockMap, mask_file: Path, timeout_s: float
    ) -> tuple[Record, Outcome]:
        """The record of a case, and rank 0's outcome behind it."""
        outcome = self._world.ask(case, mask_file, timeout_s)
        return to_record(case, mask, outcome, self.fingerprint, self.environment), outcome


def _network_variables() -> dict[str, str]:
    """Ranks of one machine meet at its loopback, whatever its name resolves to; a setting of the user's stays."""
    chosen = os.environ.get("GLOO_SOCKET_IFNAME")
    return {} if chosen or os.uname().sysname != "Linux" else {"GLOO_SOCKET_IFNAME": "lo"}
