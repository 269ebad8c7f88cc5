"""How measuring processes start: on a CPU forked by a server that has imported torch, on a GPU each by itself.

One server serves all jobs of a run of Snakemake, which names it in LONGCA_FORK_SERVER, so that torch is imported once a
study; a command typed by hand has one of its own.
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from longca.errors import LongcaError

VARIABLE = "LONGCA_FORK_SERVER"
# torch, what its profiler and the first gradient of most kernels import in seconds of their own, and what messages and
# masks are read with.
_FOR_A_COMMAND = (
    "torch.distributed",
    "torch._dynamo",
    "pydantic.dataclasses",
    "pydantic.type_adapter",
    "yaml",
)
# And, worth it where many jobs compile, torch.compile's backend.
_FOR_A_RUN = (*_FOR_A_COMMAND, "torch._inductor.compile_fx")
# Of a Unix socket's path, its end counted; macOS has 104.
_LONGEST_PATH = 104


@cache
def _own_server(modules: tuple[str, ...]) -> tuple[Path, subprocess.Popen[bytes]]:
    """The socket of a server that ends with this process, and the server, which ends where none holds it.

    It imports `modules` when it is asked for the first time.
    """
    folder = Path(tempfile.mkdtemp(prefix="longca-"))  # of this user alone, and so is the socket in it
    if len(str(folder / "fork")) >= _LONGEST_PATH:
        folder.rmdir()
        folder = Path(tempfile.mkdtemp(prefix="longca-", dir="/tmp"))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "fork"))
        listener.listen()
        number = listener.fileno()
        server = subprocess.Popen(
            [sys.executable, "-m", "longca.measure.fork_server", str(number), *modules],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            pass_fds=[number],
        )
    return folder / "fork", server


def serve_jobs() -> None:
    """Have one server for every `longca` command that this process starts from now on."""
    os.environ[VARIABLE] = str(_own_server(_FOR_A_RUN)[0])


def run_folder() -> Path | None:
    """A folder that all jobs of a run share, gone when the run's server ends; None where there is no such server."""
    return Path(os.environ[VARIABLE]).parent if VARIABLE in os.environ else None


class ForkedProcess:
    """A process that runs a module as `python -m` does, in a session of its own. `sentinel` is ready at its end."""

    def __init__(
        self,
        module: str,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        descriptors: tuple[int, int, int],
    ) -> None:
        """`descriptors`: its stdin, stdout and stderr. Raises LongcaError where the server has been killed."""
        self._connection = socket.socket(socket.AF_UNIX)
        server = os.environ.get(VARIABLE) or str(_own_server(_FOR_A_COMMAND)[0])
        try:
            self._connection.connect(server)
        except (ConnectionRefusedError, FileNotFoundError) as error:
            raise LongcaError(
                f"{server}: the process that starts the workers of this run has ended; right: run the command again, "
                "which keeps what was measured"
            ) from error
        request = {
            "module": module,
            "arguments": list(arguments),
            "environment": dict(environment),
            "folder": str(Path.cwd()),
        }
        text = json.dumps(request).encode() + b"\n"
        sent = socket.send_fds(self._connection, [text], descriptors)
        self._connection.sendall(text[sent:])
        self._code: int | None = None

    @property
    def sentinel(self) -> int:
        """A descriptor that can be read once the process has ended; none after `wait`."""
        return self._connection.fileno()

    def poll(self) -> int | None:
        """The exit code, negative for a signal; None while it runs."""
        if self._code is None:
            with contextlib.suppress(BlockingIOError):
                self._connection.setblocking(False)
                self._code = self._end()
        return self._code

    def wait(self) -> int:
        """The exit code, once there is one."""
        if self._code is None:
            self._connection.setblocking(True)
            self._code = self._end()
        return self._code

    def kill(self) -> None:
        """End it and what it started, without waiting for that."""
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_WR)

    def _end(self) -> int:
        # The line is short, it comes whole. Where the server is gone it has taken its processes along.
        try:
            line = self._connection.recv(64)
        except ConnectionResetError:
            line = b""
        self._connection.close()
        return int(line) if line else -signal.SIGKILL


class SpawnedProcess(subprocess.Popen[bytes]):
    """A process that imports all by itself, with a ForkedProcess's manners."""

    def __init__(
        self,
        module: str,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        descriptors: tuple[int, int, int],
    ) -> None:
        stdin, stdout, stderr = descriptors
        super().__init__(
            [sys.executable, "-m", module, *arguments],
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            env=environment,
            start_new_session=True,
        )

    def kill(self) -> None:
        """End it and what it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
