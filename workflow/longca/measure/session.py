"""A kernel's worker over many cases: started once, started again after it was lost or ran out of memory."""

from dataclasses import asdict
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
from longca.measure.protocol import Loaded, Outcome, Request
from longca.measure.record import Record
from longca.measure.worker_client import Worker, WorkerLostError
from longca.study.model import Protocol

# Importing torch and a kernel's library from a cold, shared file system takes minutes.
_START_TIMEOUT_S = 600.0


class KernelSession:
    """Measures cases of one kernel. What the first worker says of itself holds for the session."""

    def __init__(self, family: str, kernel: str, protocol: Protocol, budget: Budget = NO_LIMIT) -> None:
        self.family, self.kernel, self.protocol, self._budget = family, kernel, protocol, budget
        self._asked = 0
        worker = self._start()
        self._worker: Worker | None = worker
        self.device = worker.ready.device
        self.loaded, self._broken = self._load(worker)
        versions = self.loaded.versions if self.loaded else {}
        self.environment: dict[str, Any] = worker.ready.environment | {"versions": versions}
        self.fingerprint = measured_fingerprint(family, kernel, versions)

    def _start(self) -> Worker:
        longest = self._budget.left(_START_TIMEOUT_S)
        try:
            return Worker(self.family, self.kernel, self.protocol.device, self.protocol.threads, longest)
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

    def measure(
        self, case: Case, mask: Mask | BlockMap, mask_file: Path, timeout_s: float
    ) -> tuple[Record, Outcome]:
        """The record of a case, and the worker's outcome behind it."""
        outcome = self._outcome(case, mask_file, timeout_s)
        return to_record(case, mask, outcome, self.fingerprint, self.environment), outcome

    def _outcome(self, case: Case, mask_file: Path, timeout_s: float) -> Outcome:
        if self.loaded is None:
            return Outcome(status="crashed", reason=self._broken)
        if not self.loaded.serves:
            return Outcome(status="missing", reason=self.loaded.missing)
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
        )
        try:
            outcome = self._running().measure(request, timeout_s)
        except WorkerLostError as error:
            self._worker = None
            return Outcome(status=error.status, reason=str(error))
        if outcome.status in ("out_of_memory", "crashed"):
            self.close()  # the next case starts clean: memory in pieces, or a device in error, would be its fault too
        return outcome

    def _running(self) -> Worker:
        if self._worker is None:
            self._worker = self._start()
            self._worker.load()
        return self._worker

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
