"""The `longca lengths` command as real processes: memory, progress, and deaths."""

import contextlib
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
import zstandard
from data_corpora import LONGCA, json_lines

# A line of a ready length and 64 KiB that are read and not counted; a frame of a thousand of them is 60 MiB.
FRAME = zstandard.compress(json_lines([{"length": 7, "padding": "x" * 65536}]) * 1000)
# Runs the command and prints, at its end, an upper bound (KiB) on the memory that it and two workers held: its own
# peak and twice the largest child's, though they share most of their pages. Its own is the kernel's VmHWM: ru_maxrss
# of a started program begins at the peak of the process that started it, here pytest with all that it imported.
MEASURED = """
import re, resource, sys
from pathlib import Path
from longca.cli.main import app
sys.argv[0] = "longca"
app(standalone_mode=False)
own = int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])
print(own + 2 * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def command(file: Path, workers: int, output: Path) -> list[str]:
    return [
        *("lengths", "mine", "--layout", "prolong", "--files", str(file)),
        *("--workers", str(workers), "--output", str(output)),
    ]


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_memory_stays_under_a_gibibyte_whatever_the_size(tmp_path: Path) -> None:
    file = tmp_path / "big.jsonl.zst"
    text = json_lines([{"text": "A book of thirty megabytes, all of it one document. " * 600_000}])
    file.write_bytes(FRAME * 20 + zstandard.compress(text))
    output = tmp_path / "big.csv"
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, *command(file, 2, output)],
        capture_output=True,
        text=True,
        check=True,
    )
    rows = output.read_text().splitlines()
    assert rows[1].startswith("7,7,") and rows[1].endswith(",20000")
    assert len(rows) == 3 and int(rows[2].split(",")[0]) > 6_000_000
    kibibytes = int(done.stdout.splitlines()[-1])
    assert kibibytes < 1024 * 1024


def test_a_terminal_sees_a_bar_and_a_log_does_not(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl.zst"
    file.write_bytes(FRAME)
    arguments = [LONGCA, *command(file, 1, tmp_path / "a.csv")]
    quiet = subprocess.run(arguments, capture_output=True, text=True, check=True)
    assert quiet.stderr == ""
    reader, terminal = pty.openpty()
    try:
        subprocess.run(
            arguments, stderr=terminal, stdout=subprocess.PIPE, check=True, env=os.environ | {"TERM": "xterm"}
        )
        os.set_blocking(reader, False)
        shown = os.read(reader, 100_000).decode()
    finally:
        os.close(terminal)
        os.close(reader)
    assert "━" in shown and "1,000 documents" in shown


@pytest.fixture
def counting(tmp_path: Path):
    """A count that takes minutes, with its two workers started."""
    file = tmp_path / "endless.jsonl.zst"
    file.write_bytes(FRAME * 2000)
    arguments = [LONGCA, *command(file, 2, tmp_path / "out" / "mine.csv")]
    process = psutil.Popen(arguments, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    while len(process.children()) < 2:
        with contextlib.suppress(psutil.TimeoutExpired):
            pytest.fail(f"ended early with {process.wait(timeout=0.05)}")
    yield process
    if process.poll() is None:
        process.kill()
        process.wait()
    process.stderr.close()


def test_a_killed_worker_ends_the_count_with_a_word(counting: psutil.Popen, tmp_path: Path) -> None:
    counting.children()[0].send_signal(signal.SIGKILL)
    _, errors = counting.communicate(timeout=60)
    assert counting.returncode == 2
    assert errors.splitlines()[-1].startswith("longca: error: a counting process was killed")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("kill", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_killed_count_leaves_no_process_and_no_file(
    counting: psutil.Popen, kill: signal.Signals, tmp_path: Path
) -> None:
    workers = counting.children()
    counting.send_signal(kill)
    counting.communicate(timeout=60)
    assert counting.returncode != 0
    _, alive = psutil.wait_procs(workers, timeout=60)
    assert alive == []
    assert not (tmp_path / "out").exists()
