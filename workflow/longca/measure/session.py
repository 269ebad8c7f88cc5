"""A kernel's worker over many cases: started once, started again after it was lost or ran out of memory."""

import time
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any

from longca.cases import Case
from longca.errors import LongcaError
from longca.kernels.fingerprint import measured_fingerprint
from longca.masks.blocks import BlockMap
from longca.masks.mask import Mask
from longca.measure.budget import NO_LIMIT, Budget
from longca.measure.outcome import to_record
from longca.measure.protocol import Loaded, Outcome, Ready, Request
from longca.measure.record import Record
from longca.measure.worker_client import Worker, WorkerLostError
from longca.study.model import Protocol

# Importing torch and a kernel's library from a cold, shared file system takes minutes.
_START_TIMEOUT_S = 600.0


@dataclass(frozen=True)
class Opened:
    """What a worker said of itself: device (cpu, cuda), environment, its kernel's fingerprint, and its library.

    loaded is None where the process died while importing it; `broken` says how.
    """

    device: str
    environment: dict[str, Any]
    fingerprint: str
    loaded: Loaded | None
    broken: str | None


class KernelSession:
    """Measures cases of one kernel. What the first worker says of itself holds for the session."""

    def __init__(
        self,
        family: str,
        kernel: str,
        protocol: Protocol,
        budget: Budget = NO_LIMIT,
        oracles: Path | None = None,
    ) -> None:
        """`oracles`: a folder that sessions of one run share, see verify.Verifier.

        The worker starts at once; what it says of itself is waited for when it is asked.
        """
        self.family, self.kernel, self.protocol, self._budget = family, kernel, protocol, budget
        self._oracles = oracles
        self._asked = 0
        # Of the run's control (measure.controls), which every record then names.
        self.control: str | None = None
        self._importing_s = 0.0
        self._worker: Worker | None = self._start()

    def _start(self) -> Worker:
        longest = self._budget.left(_START_TIMEOUT_S)
        return Worker(self.family, self.kernel, self.protocol.device, self.protocol.threads, longest)

    @cached_property
    def opened(self) -> Opened:
        """What the first worker says of itself. Raises LongcaError where none starts on the device asked for."""
        start = time.monotonic()
        assert self._worker is not None
        ready = self._ready(self._worker)
        self.protocol.check_device(ready.environment["device"])
        loaded, broken = self._load(self._worker)
        self._importing_s += time.monotonic() - start
        versions = loaded.versions if loaded else {}
        fingerprint = measured_fingerprint(self.family, self.kernel, versions)
        return Opened(ready.device, ready.environment | {"versions": versions}, fingerprint, loaded, broken)

    def _ready(self, worker: Worker) -> Ready:
        worker.start_timeout_s = self._budget.left(_START_TIMEOUT_S)  # less is left than when it started
        try:
            return worker.ready
        except WorkerLostError as error:
            self._budget.left()  # where that is what ended it
            raise LongcaError(f"no worker starts on device {self.protocol.device}: {error}") from error

    def _load(self, worker: Worker) -> tuple[Loaded | None, str | None]:
        """What the worker says of the kernel's library, and why it died while importing it, if it did."""
        try:
            return worker.load(), None
        except WorkerLostError as error:
            self._budget.left()
            return None, f"while importing its library: {error}"

    @property
    def fingerprint(self) -> str:
        """Of the kernel's source and the versions really imported."""
        return self.opened.fingerprint

    @property
    def environment(self) -> dict[str, Any]:
        """What every record of this session says of where it was measured."""
        return self.opened.environment | ({"control": self.control} if self.control else {})

    def measure(
        self, case: Case, mask: Mask | BlockMap, mask_file: Path, timeout_s: float
    ) -> tuple[Record, Outcome]:
        """The record of a case, and the worker's outcome behind it."""
        outcome = self._outcome(case, mask_file, timeout_s)
        return to_record(case, mask, outcome, self.fingerprint, self.environment), outcome

    def _outcome(self, case: Case, mask_file: Path, timeout_s: float) -> Outcome:
        if self.opened.loaded is None:
            return Outcome(status="crashed", reason=self.opened.broken)
        if not self.opened.loaded.serves:
            return Outcome(status="missing", reason=self.opened.loaded.missing)
        outcome = self._ask(case, mask_file, timeout_s, gradients=True)
        if outcome.status == "crashed" and outcome.number < 0 and case.pass_ == "forward":
            # Perhaps its backward killed the worker, asked for gradients: the forward gets a try of its own.
            alone = self._ask(case, mask_file, timeout_s, gradients=False)
            return alone if alone.status == "ok" else outcome
        return outcome

    def _ask(self, case: Case, mask_file: Path, timeout_s: float, gradients: bool) -> Outcome:
        self._asked += 1
        request = Request(
            number=self._asked,
            gradients=gradients,
            case=asdict(case),
            mask_file=str(mask_file),
            warmups=self.protocol.warmups,
            repetitions=self.protocol.repetitions,
            sampling_s=self.protocol.sampling_time,
            oracles=None if self._oracles is None else str(self._oracles),
        )
        try:
            outcome = self._running().measure(request, timeout_s)
        except WorkerLostError as error:
            self._worker = None
            return Outcome(status=error.status, reason=str(error))
        if outcome.status in ("out_of_memory", "crashed") and not outcome.clean:
            self.close()  # the next case starts clean: memory in pieces, or a device in error, would be its fault too
        return outcome

    def _running(self) -> Worker:
        if self._worker is None:
            start = time.monotonic()
            self._worker = self._start()
            self._ready(self._worker)
            self._worker.load()
            self._importing_s += time.monotonic() - start
        return self._worker

    def take_importing_s(self) -> float:
        """Seconds waited, since this was last asked, for workers to start and to import their library."""
        taken, self._importing_s = self._importing_s, 0.0
        return taken

    def close(self) -> None:
        """End the worker, if one runs."""
        if self._worker is not None:
            self._worker.close()
            self._worker = None

    def __enter__(self) -> "KernelSession":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
