"""Processes that the fork server makes: as `python -m` would, sharing what it imported, gone with who asked."""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from longca.errors import LongcaError
from longca.measure.processes import VARIABLE, ForkedProcess

# Prints a line of JSON about itself, then does what its first argument says.
MODULE = """
import json, os, signal, subprocess, sys, time

child = subprocess.Popen(["sleep", "600"]) if sys.argv[1] == "hang" else None
print(json.dumps({
    "arguments": sys.argv[1:], "folder": os.getcwd(), "word": os.environ["WORD"], "others": "OTHER" in os.environ,
    "name": __name__, "asked": sys.stdin.readline(), "server": os.getppid(), "leads": os.getsid(0) == os.getpid(),
    "has_torch": "torch" in sys.modules, "processes": [os.getpid(), *([child.pid] if child else [])],
}), flush=True)
match sys.argv[1]:
    case "raise": raise ValueError("no such thing")
    case "exit": sys.exit(3)
    case "words": sys.exit("in words")
    case "signal": os.kill(os.getpid(), signal.SIGSEGV)
    case "hang": time.sleep(600)
"""
# Asks for a process that hangs, says what it is told of it, and is killed.
ASKER = """
import os, signal, sys
from longca.measure.processes import ForkedProcess
process = ForkedProcess("says", ["hang"], os.environ, (0, 1, 2))
signal.pause()
"""
Start = Callable[..., tuple[ForkedProcess, dict[str, Any], Path]]


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Start:
    """Start the module with arguments; the process, what it said of itself, and the file of its stderr."""
    (tmp_path / "says.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)

    def started(*arguments: str) -> tuple[ForkedProcess, dict[str, Any], Path]:
        environment = {"WORD": "ä", "PYTHONPATH": str(tmp_path), "PATH": os.environ["PATH"]}
        log, (asked, ask), (answer, said) = tmp_path / "log", os.pipe(), os.pipe()
        with log.open("w") as errors:
            process = ForkedProcess("says", arguments, environment, (asked, said, errors.fileno()))
        os.close(asked)
        os.close(said)
        with os.fdopen(ask, "w") as question:
            question.write("what?\n")
        with os.fdopen(answer) as answers:
            return process, json.loads(answers.readline()), log

    return started


def gone(*processes: int) -> bool:
    """Whether these processes end, or have ended."""
    known = [psutil.Process(pid) for pid in processes if psutil.pid_exists(pid)]
    return not psutil.wait_procs(known, timeout=60)[1]


def test_it_runs_a_module_as_python_does(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTHER", "not passed on")
    process, said, log = start("a b", "ö")
    assert process.wait() == 0
    assert process.poll() == 0
    assert said["arguments"] == ["a b", "ö"]
    assert said["folder"] == str(tmp_path)
    assert (said["word"], said["others"], said["asked"]) == ("ä", False, "what?\n")
    assert (said["name"], said["leads"]) == ("__main__", True)
    assert log.read_text() == ""


def test_processes_share_one_import_of_torch(start: Start) -> None:
    (first, one, _), (second, other, _) = start("exit"), start("exit")
    assert one["has_torch"] is other["has_torch"] is True
    assert one["server"] == other["server"] != os.getpid()
    assert (first.wait(), second.wait()) == (3, 3)


@pytest.mark.parametrize(
    ("end", "code", "words"),
    [
        ("raise", 1, "ValueError: no such thing"),
        ("words", 1, "in words"),
        ("exit", 3, None),
        ("signal", -signal.SIGSEGV, None),
    ],
)
def test_how_it_ends_is_told(start: Start, end: str, code: int, words: str | None) -> None:
    process, _, log = start(end)
    assert process.wait() == code
    assert (log.read_text().splitlines() or [None])[-1] == words


def test_longca_is_imported_as_it_stands_when_the_process_starts(start: Start, tmp_path: Path) -> None:
    start("exit")[0].wait()
    (tmp_path / "longca").mkdir()
    (tmp_path / "longca" / "__init__.py").write_text("print('edited')")
    (tmp_path / "says.py").write_text(
        "import sys; print('{}', flush=True); sys.stdout = sys.stderr; import longca"
    )
    process, _, log = start()
    assert process.wait() == 0
    assert log.read_text() == "edited\n"


def test_a_killed_one_goes_with_what_it_started(start: Start) -> None:
    process, said, _ = start("hang")
    assert process.poll() is None
    process.kill()
    assert process.wait() == -signal.SIGKILL
    process.kill()  # once more is no mistake
    assert gone(*said["processes"])


def ask_from_elsewhere(
    tmp_path: Path, environment: dict[str, str]
) -> tuple[subprocess.Popen[str], dict[str, Any]]:
    """A process that has asked for one that hangs, and what that one said."""
    (tmp_path / "says.py").write_text(MODULE)
    # What is under test comes from here, whatever is installed.
    path = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    asker = subprocess.Popen(
        [sys.executable, "-c", ASKER],
        env={**os.environ, "WORD": "", "PYTHONPATH": path, **environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert asker.stdin and asker.stdout
    asker.stdin.write("what?\n")
    asker.stdin.flush()
    return asker, json.loads(asker.stdout.readline())


def test_it_does_not_outlive_who_asked(start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does the server serve another less."""
    from longca.measure import processes

    here = start("exit")[1]["server"]
    asker, said = ask_from_elsewhere(
        tmp_path, {VARIABLE: str(processes._own_server(processes._FOR_A_COMMAND)[0])}
    )
    assert said["server"] == here
    asker.kill()
    asker.wait()
    assert gone(*said["processes"])
    assert start("exit")[0].wait() == 3


def test_a_server_and_its_processes_do_not_outlive_who_started_it(tmp_path: Path) -> None:
    asker, said = ask_from_elsewhere(tmp_path, {"TMPDIR": str(tmp_path)})
    server = said["server"]
    assert psutil.Process(server).ppid() == asker.pid
    asker.kill()
    asker.wait()
    assert gone(server, *said["processes"])
    assert list(tmp_path.glob("longca-*")) == []


def test_what_another_asked_for_goes_on_where_the_server_is_no_longer_wanted(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Snakemake alone was killed: its job must not take its worker for crashed."""
    script = "from longca.measure.processes import *; serve_jobs(); print(os.environ[VARIABLE], flush=True); input()"
    path = os.pathsep.join(filter(None, sys.path))
    command = [sys.executable, "-c", script]
    environment = {**os.environ, "PYTHONPATH": path}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as starter:
        assert starter.stdout
        monkeypatch.setenv(VARIABLE, starter.stdout.readline().strip())
        process, said, _ = start("hang")
        starter.kill()
    running, server = psutil.Process(said["processes"][0]), psutil.Process(said["server"])
    assert server.ppid() != starter.pid
    assert process.poll() is None
    running.send_signal(signal.SIGTERM)
    assert process.wait() == -signal.SIGTERM
    assert gone(server.pid, *said["processes"])


@pytest.mark.parametrize("left", [True, False])
def test_a_killed_server_is_named(left: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # of a killed one the socket stays, at which nobody listens
    server = tmp_path / "socket"
    if left:
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(str(server))
    monkeypatch.setenv(VARIABLE, str(server))
    with pytest.raises(LongcaError, match=rf"{server}: the process that starts .* run the command again"):
        ForkedProcess("json.tool", [], {}, (0, 1, 2))


def test_a_folder_for_temporary_files_with_a_long_name_is_no_matter(tmp_path: Path) -> None:
    long = tmp_path / ("long" * 30)
    long.mkdir()
    asker, said = ask_from_elsewhere(tmp_path, {"TMPDIR": str(long)})
    assert said["has_torch"]
    asker.kill()
    asker.wait()
    assert gone(*said["processes"])
