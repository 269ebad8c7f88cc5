"""A SLURM cluster of this machine, and what happens to the jobs and nodes of one."""

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil

HERE = Path(__file__).parent
TOOLS = ("munged", "slurmctld", "slurmd", "sbatch")
NODES, CPUS, MEM_MB, GPUS = 4, 2, 8000, 2
# What a job that has ended stays in, unless SLURM starts it again; its node's failure is not among them.
ENDS = {"CANCELLED", "COMPLETED", "FAILED", "OUT_OF_MEMORY", "TIMEOUT"}


def obstacle() -> str | None:
    """Why no cluster can be started here, or None."""
    absent = [tool for tool in TOOLS if shutil.which(tool) is None]
    if absent:
        return f"{', '.join(absent)}: not installed; on Debian: apt-get install munge slurmctld slurmd slurm-client"
    if os.geteuid() != 0:
        return "a cluster of this machine is started by root alone"
    conf = Path("/etc/slurm/slurm.conf")
    if conf.is_symlink():
        folder = conf.readlink().parent.parent
        return (
            f"{conf}: tests run here, or were killed; of killed ones: {HERE / 'stop_cluster.sh'} '{folder}'"
        )
    return f"{conf}: this machine is part of a cluster" if conf.exists() else None


def wait_until(
    condition: Callable[[], object], what: str, seconds: float = 900, known: Callable[[], str] = str
) -> None:
    """Return when the condition holds; after so many seconds it is a failure, which says what is known by then."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what}: not within {seconds:g} s\n{known()}"
        time.sleep(0.2)


class Cluster:
    """Four nodes, node1 to node4, of two processors and two GPUs that are none."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {
            **os.environ,
            "SLURM_CONF": str(folder / "etc" / "slurm.conf"),
            "GLOO_SOCKET_IFNAME": "lo",
        }

    def start(self) -> None:
        """Make it anew and wait for its nodes."""
        words = [str(self.folder), *map(str, (NODES, CPUS, MEM_MB, GPUS))]
        # Daemons keep what they inherit: no pipe that somebody reads to its end.
        with (self.folder.parent / "start.log").open("w+") as log:
            done = subprocess.run([str(HERE / "start_cluster.sh"), *words], stdout=log, stderr=log)
            log.seek(0)
            assert done.returncode == 0, log.read()

    def stop(self) -> None:
        """End its jobs and its processes."""
        subprocess.run([str(HERE / "stop_cluster.sh"), str(self.folder)], check=True)

    def run(self, *words: str, cwd: Path | None = None, env: dict[str, str] | None = None) -> str:
        """What a command of SLURM's prints."""
        done = subprocess.run(words, cwd=cwd, env=env or self.environment, capture_output=True, text=True)
        assert done.returncode == 0, f"{' '.join(words)}: {done.stdout}{done.stderr}"
        return done.stdout

    def job(self, number: str, column: str) -> str:
        """What squeue says of a job, as %T of its state and %N of its nodes."""
        lines = self.run(
            "squeue", "--noheader", "--states=all", "--jobs", number, f"--format=%A|{column}"
        ).splitlines()
        return dict(line.strip().split("|", 1) for line in lines)[number]

    def wait_for(self, number: str, state: str, what: str) -> None:
        """Wait until a job is in a state; one that has ended in another never will be."""

        def reached() -> bool:
            now = self.job(number, "%T")
            assert now == state or now not in ENDS, f"{what}: {now}, not {state}\n{self.story(number)}"
            return now == state

        wait_until(reached, what, known=lambda: self.story(number))

    def story(self, number: str) -> str:
        """What SLURM knows of a job, the end of what the job printed, and of what the daemons did."""
        job = self.run("scontrol", "show", "job", number)
        printed = Path(dict(line.strip().split("=", 1) for line in job.splitlines() if "=" in line)["StdOut"])
        told = [job, self.run("squeue", "--states=all")]
        for file in (printed, *sorted((self.folder / "log").glob("slurm*.log"))):
            lines = file.read_text(errors="replace").splitlines() if file.exists() else []
            told += [f"{file}:", *lines[-20:]]
        return "\n".join(told)

    def active(self) -> list[str]:
        """Jobs that run or wait to."""
        return self.run("squeue", "--noheader", "--format=%A").split()

    def fail(self, node: str) -> None:
        """A node goes down: its daemon and all that its jobs started on it, from one moment to the next."""
        numbers = self.run(
            "squeue", "--noheader", "--states=running", f"--nodelist={node}", "--format=%A"
        ).split()
        daemon = int((self.folder / "run" / f"slurmd.{node}.pid").read_text())
        for process in [psutil.Process(daemon), *_processes(node, numbers)]:
            process.send_signal(signal.SIGKILL)
        self.run("scontrol", "update", f"nodename={node}", "state=down", "reason=failed")

    def repair(self, node: str) -> None:
        """The node comes back."""
        subprocess.run(["slurmd", "-N", node], env=self.environment, check=True)
        wait_until(lambda: "idle" in self.run("sinfo", "-h", "-n", node, "-o", "%T"), f"{node} idle")


def _processes(node: str, numbers: list[str]) -> Iterator[psutil.Process]:
    """What SLURM's steps of these jobs, and the jobs themselves, run as on a node."""
    for process in psutil.process_iter(["cmdline", "environ"]):
        command, variables = " ".join(process.info["cmdline"] or []), process.info["environ"] or {}
        step = any(command.startswith(f"slurmstepd: [{number}.") for number in numbers)
        if step or (variables.get("SLURMD_NODENAME") == node and variables.get("SLURM_JOB_ID") in numbers):
            yield process
