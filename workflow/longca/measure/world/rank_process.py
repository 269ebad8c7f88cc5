"""The process of one rank, seen from the one that started it."""

import contextlib
import multiprocessing
import os
import signal
import tempfile
from dataclasses import replace
from multiprocessing.connection import wait
from pathlib import Path

from longca.measure.world.place import Place
from longca.measure.world.world import RankLostError

# On CPUs a server that has imported what ranks need forks: those of a world start together, at once. CUDA does
# not outlive a fork, and whatever a library does with it as it is imported: there each rank is a process of its own.
_FORKED, _SPAWNED = multiprocessing.get_context("forkserver"), multiprocessing.get_context("spawn")
_PRELOADED = [
    "torch.distributed",
    "torch.profiler",
    "longca.ops.segments",
    "longca.measure.world.rank_measurer",
]


class RankProcess:
    """A rank: lines of JSON go to it and come from it. `connection` and `sentinel` are for multiprocessing's wait."""

    def __init__(self, place: Place) -> None:
        from longca.measure.world.rank import serve

        _FORKED.set_forkserver_preload(_PRELOADED)
        context = _FORKED if place.device == "cpu" else _SPAWNED
        handle, log = tempfile.mkstemp(prefix=f"longca-rank-{place.rank}-", suffix=".log")
        os.close(handle)
        self.rank, self._log = place.rank, Path(log)
        self.connection, theirs = context.Pipe()
        self._process = context.Process(target=serve, args=(theirs, replace(place, log=log)), daemon=True)
        self._process.start()
        theirs.close()

    @property
    def sentinel(self) -> int:
        """Ready once the process has ended."""
        return self._process.sentinel

    def send(self, line: str) -> None:
        """Ask something of the rank; where it is gone, the answer that does not come says so."""
        with contextlib.suppress(OSError):
            self.connection.send_bytes(line.encode())

    def has_something(self, longest_s: float) -> bool:
        """Whether within so many seconds there is an answer, or the process has ended."""
        return bool(wait([self.connection, self.sentinel], longest_s))

    def receive(self) -> str | RankLostError:
        """The answer that is there, or how the process ended without one."""
        try:
            if self.connection.poll():
                return self.connection.recv_bytes().decode()
        except (EOFError, OSError):
            pass
        self._process.join()
        return RankLostError(self._last_words())

    def kill(self) -> None:
        """End the process, whatever it is at, without waiting for it."""
        self._process.kill()

    def close(self) -> None:
        """End the process and wait until it has."""
        self._process.kill()
        self._process.join()
        self.connection.close()
        self._log.unlink(missing_ok=True)

    def _last_words(self) -> str:
        """How the process ended and the last line it wrote."""
        code = self._process.exitcode or 0
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        text = self._log.read_text(encoding="utf-8", errors="replace")
        lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("USDT:")]
        return f"{how}: {lines[-1][:300]}" if lines else how
