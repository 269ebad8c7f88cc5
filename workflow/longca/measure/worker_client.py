"""Starting a worker process and asking it, with a time limit on every answer."""

import contextlib
import os
import queue
import signal
import tempfile
import threading
import time
from functools import cached_property
from types import TracebackType
from typing import TypeVar

from pydantic import TypeAdapter

from longca.measure.processes import ForkedProcess, SpawnedProcess
from longca.measure.protocol import Answer, Loaded, Outcome, Ready, Request
from longca.measure.sites import Site, kernel_site, worker_environment

_POLL_S = 1.0
_LATE = ""  # no answer is empty: each ends in a newline
_Expected = TypeVar("_Expected", Ready, Loaded, Outcome)
_ANSWERS: TypeAdapter[Ready | Loaded | Outcome] = TypeAdapter(Answer)


class WorkerLostError(Exception):
    """The worker is gone; `status` is crashed or timeout, and the message is the reason for a record."""

    def __init__(self, status: str, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class Worker:
    """A worker process of one kernel. Use as a context manager: leaving it ends the process and its children.

    It starts at once and imports its library by itself, whether or not it is waited for.
    """

    def __init__(
        self, family: str, kernel: str, device: str, threads: int | None, start_timeout_s: float
    ) -> None:
        self.start_timeout_s = start_timeout_s
        environment, arguments = worker_environment(kernel), [family, kernel, device]
        if threads is not None:
            variables = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "TORCHINDUCTOR_COMPILE_THREADS")
            environment |= dict.fromkeys(variables, str(threads))
            arguments.append(str(threads))
        self._log = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115 (closed with the worker)
        # A kernel with a site of its own may have another torch, too.
        start = ForkedProcess if device == "cpu" and kernel_site(kernel) == Site() else SpawnedProcess
        (requests, own_end), (said, answers) = os.pipe(), os.pipe()
        self._requests, self._said = os.fdopen(own_end, "w"), os.fdopen(said)
        try:
            descriptors = (requests, answers, self._log.fileno())
            self._process = start("longca.measure.worker", arguments, environment, descriptors)
        finally:
            os.close(requests)
            os.close(answers)
        self._answers: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    @cached_property
    def ready(self) -> Ready:
        """Where it runs; waited for. Raises WorkerLostError where it does not come so far."""
        return self._expect(Ready, self.start_timeout_s)

    def load(self) -> Loaded:
        """What came of importing the kernel's library; asked for once. Raises WorkerLostError where it was killed."""
        _ = self.ready  # which comes first
        return self._expect(Loaded, self.start_timeout_s)

    def measure(self, request: Request, timeout_s: float) -> Outcome:
        """The outcome of one case. Raises WorkerLostError where none came; the worker is then closed."""
        with contextlib.suppress(BrokenPipeError):  # it died before: the answer that does not come says how
            self._requests.write(request.model_dump_json() + "\n")
            self._requests.flush()
        outcome = self._expect(Outcome, timeout_s)
        if outcome.number != request.number:
            self.close()
            raise WorkerLostError(
                "crashed", f"answered request {outcome.number} where {request.number} was asked"
            )
        return outcome

    def close(self) -> None:
        """End the process, and whatever it started, without waiting for work in progress."""
        self._process.kill()
        self._process.wait()
        self._log.close()
        with contextlib.suppress(BrokenPipeError):
            self._requests.close()

    def __enter__(self) -> "Worker":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _read(self) -> None:
        with self._said:
            for line in self._said:
                self._answers.put(line)
        self._answers.put(None)

    def _expect(self, kind: type[_Expected], timeout_s: float) -> _Expected:
        line = self._next_line(time.monotonic() + timeout_s)
        if line == _LATE:
            self.close()
            raise WorkerLostError("timeout", f"no answer within {timeout_s:g} s")
        if line is None:
            reason = self._last_words()
            self.close()
            raise WorkerLostError("crashed", reason)
        answer = _ANSWERS.validate_json(line)
        assert isinstance(answer, kind), f"the worker answered {answer.kind} where {kind.__name__} was due"
        return answer

    def _next_line(self, deadline: float) -> str | None:
        """The next answer; None where the worker ended, _LATE at the deadline. A child of it may hold the pipe open."""
        while True:
            ended = self._process.poll() is not None
            try:
                return self._answers.get(timeout=max(0.0, min(_POLL_S, deadline - time.monotonic())))
            except queue.Empty:
                if ended:
                    return None
                if time.monotonic() >= deadline:
                    return _LATE

    def _last_words(self) -> str:
        """How the process ended and the last line it wrote."""
        code = self._process.wait()
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        self._log.seek(0)
        # Torch's profiler reports its own doings there too.
        lines = [line.strip() for line in self._log if line.strip() and not line.startswith("USDT:")]
        return f"the worker {how}: {lines[-1][:300]}" if lines else f"the worker {how}"
