"""The process of one rank, seen from the one that started it."""

import contextlib
import json
import multiprocessing
import os
import signal
import tempfile
from dataclasses import asdict, replace
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path

from longca.measure.processes import ForkedProcess
from longca.measure.world.place import Place
from longca.measure.world.world import RankLostError


class _SpawnedRank(SpawnProcess):
    """A rank that imports all by itself, with a ForkedProcess's manners.

    CUDA does not outlive a fork, nor what a library does with it as it is imported.
    """

    def __init__(self, connection: Connection, place: Place) -> None:
        from longca.measure.world.rank import serve

        super().__init__(target=serve, args=(connection, place), daemon=True)
        self.start()

    def wait(self) -> int:
        """The exit code, once there is one."""
        self.join()
        return self.exitcode or 0


class RankProcess:
    """A rank: lines of JSON go to it and come from it. `connection` and `sentinel` are for multiprocessing's wait."""

    def __init__(self, place: Place) -> None:
        handle, log = tempfile.mkstemp(prefix=f"longca-rank-{place.rank}-", suffix=".log")
        self.rank, self._log = place.rank, Path(log)
        self.connection, theirs = multiprocessing.Pipe()
        place = replace(place, log=log)
        self._process: ForkedProcess | _SpawnedRank
        if place.device == "cpu":
            described = json.dumps(asdict(place))
            descriptors = (theirs.fileno(), handle, handle)
            self._process = ForkedProcess("longca.measure.world.rank", [described], os.environ, descriptors)
        else:
            self._process = _SpawnedRank(theirs, place)
        theirs.close()
        os.close(handle)

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
        return RankLostError(self._last_words())

    def kill(self) -> None:
        """End the process, whatever it is at, without waiting for it."""
        self._process.kill()

    def close(self) -> None:
        """End the process and wait until it has."""
        self._process.kill()
        self._process.wait()
        self.connection.close()
        self._log.unlink(missing_ok=True)

    def _last_words(self) -> str:
        """How the process ended and the last line it wrote."""
        code = self._process.wait()
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
        text = self._log.read_text(encoding="utf-8", errors="replace")
        lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("USDT:")]
        return f"{how}: {lines[-1][:300]}" if lines else how
