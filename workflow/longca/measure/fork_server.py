"""A process that has imported torch once and forks measuring processes from itself, each in milliseconds.

    python -m longca.measure.fork_server LISTENER MODULE...

LISTENER: the descriptor of a Unix socket that listens. MODULE: imported before the first fork. The server ends when its
stdin and its processes have. It holds no code of longca's: a process that it forks imports that afresh, as it stands
then.

A connection is a process: asked for by a line of JSON (module, arguments, environment, folder) and three descriptors,
its stdin, stdout and stderr; answered by its exit code, negative for a signal, once it has ended. Where the connection
ends before, so does the process, with all that it started. For CPUs: CUDA does not outlive a fork.
"""

import contextlib
import gc
import importlib
import json
import os
import runpy
import selectors
import shutil
import signal
import socket
import sys
import traceback
import warnings
from pathlib import Path
from typing import Any, NoReturn

_STDIN, _STDOUT, _STDERR = range(3)
_CHUNK_BYTES = 1 << 16


class ForkServer:
    """Forks on demand and tells of the ends. One thread: nothing else would survive a fork."""

    def __init__(self, listener: socket.socket, modules: list[str]) -> None:
        self._listener, self._modules = listener, modules
        self._connections: dict[int, socket.socket] = {}
        self._selector = selectors.DefaultSelector()
        self._woken, self._wakes = socket.socketpair()
        self._wakes.setblocking(False)
        self._has_imported = False

    def serve(self) -> None:
        """Serve until stdin ends, and then who asks for what still runs: a killed Snakemake leaves its jobs alive."""
        for ignored in (signal.SIGINT, signal.SIGHUP):  # a terminal's, for whoever asked
            signal.signal(ignored, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wakes.fileno())
        for source in (_STDIN, self._listener, self._woken):
            self._selector.register(source, selectors.EVENT_READ)
        is_wanted = True
        while is_wanted or self._connections:
            for key, _ in self._selector.select():
                if key.fd == _STDIN:
                    self._selector.unregister(_STDIN)
                    is_wanted = False
                elif key.fileobj is self._listener:
                    self._accept()
                elif key.fileobj is self._woken:
                    self._woken.recv(_CHUNK_BYTES)
                    self._reap()
                elif key.data in self._connections:
                    self._selector.unregister(key.fileobj)
                    _kill(key.data)

    def _accept(self) -> None:
        connection, _ = self._listener.accept()
        text, descriptors = _receive(connection)
        if len(descriptors) == 3:
            self._import()
            pid = os.fork()
            if pid == 0:
                _become(json.loads(text), descriptors)
            self._connections[pid] = connection
            self._selector.register(connection, selectors.EVENT_READ, pid)
        else:
            connection.close()  # who asked is gone
        for descriptor in descriptors:
            os.close(descriptor)

    def _import(self) -> None:
        if self._has_imported:
            return
        for module in self._modules:
            with contextlib.suppress(ImportError):  # the process that needs it says so
                importlib.import_module(module)
        gc.freeze()  # garbage collection in a forked process would copy every page
        self._has_imported = True

    def _reap(self) -> None:
        for pid in list(self._connections):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if not ended:
                continue
            _kill(pid)  # what it left behind
            connection = self._connections.pop(pid)
            with contextlib.suppress(KeyError):
                self._selector.unregister(connection)
            with contextlib.suppress(OSError), connection:  # who asked may be gone
                connection.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())


def _receive(connection: socket.socket) -> tuple[bytes, list[int]]:
    """A line and the descriptors that came with it; no line where the other end is gone."""
    text, descriptors, *_ = socket.recv_fds(connection, _CHUNK_BYTES, 3)
    while text and not text.endswith(b"\n"):
        more = connection.recv(_CHUNK_BYTES)
        if not more:
            break
        text += more
    return text, descriptors


def _become(request: dict[str, Any], descriptors: list[int]) -> NoReturn:
    """Be the process that is asked for, to its end."""
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for number in (signal.SIGHUP, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        os.setsid()
        for descriptor, place in zip(descriptors, (_STDIN, _STDOUT, _STDERR), strict=True):
            os.dup2(descriptor, place)
        os.closerange(_STDERR + 1, os.sysconf("SC_OPEN_MAX"))
        os.environ.clear()
        os.environ.update(request["environment"])
        os.chdir(request["folder"])
        for name in [name for name in sys.modules if name.partition(".")[0] == "longca"]:
            del sys.modules[name]
        sys.path[:0] = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
        sys.argv = ["", *request["arguments"]]
        runpy.run_module(request["module"], run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _kill(pid: int) -> None:
    """End a process with its group, of which it may be gone already, or which it may not lead yet."""
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError):
            kill(pid, signal.SIGKILL)


def main() -> None:
    """Serve on the listener that was inherited, and take its folder away in the end."""
    # Python's, of a fork where there are threads: those are of BLAS, which is ready for it, and asleep.
    warnings.filterwarnings("ignore", ".*fork.*", DeprecationWarning)
    listener = socket.socket(fileno=int(sys.argv[1]))
    folder = Path(listener.getsockname()).parent
    try:
        ForkServer(listener, sys.argv[2:]).serve()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
