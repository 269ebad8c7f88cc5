"""Whether this process is one rank of a world that somebody else started: torchrun, or srun."""

import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass

from longca.errors import LongcaError

# Where ranks meet under SLURM: away from torchrun's own, spread by job so that two on a node do not collide.
_FIRST_PORT, _PORTS = 20000, 20000


@dataclass(frozen=True)
class Membership:
    """One rank among `world_size`, the `local_rank`-th of `local_size` on its host. Ranks meet at host:port."""

    rank: int
    world_size: int
    local_rank: int
    local_size: int
    host: str
    port: int
    launcher: str


def find_membership(environment: Mapping[str, str]) -> Membership | None:
    """The world that torchrun's or srun's variables tell of; None where this process is alone.

    Raises LongcaError for variables that contradict each other or are no numbers.
    """
    if "RANK" in environment and "WORLD_SIZE" in environment:
        found = _torchrun(environment)
    elif "SLURM_STEP_NUM_TASKS" in environment and "SLURM_PROCID" in environment:
        found = _slurm(environment)
    else:
        return None
    if not (0 <= found.rank < found.world_size and 0 <= found.local_rank < found.local_size):
        raise LongcaError(
            f"{found.launcher} says rank {found.rank} of {found.world_size}, {found.local_rank} of "
            f"{found.local_size} on this host; right: ranks below the number of ranks"
        )
    return found if found.world_size > 1 else None


def _torchrun(environment: Mapping[str, str]) -> Membership:
    rank, size = _number(environment, "RANK"), _number(environment, "WORLD_SIZE")
    local = _number(environment, "LOCAL_RANK") if "LOCAL_RANK" in environment else rank
    local_size = _number(environment, "LOCAL_WORLD_SIZE") if "LOCAL_WORLD_SIZE" in environment else size
    host = environment.get("MASTER_ADDR", "127.0.0.1")
    # torchrun's own store listens at MASTER_PORT: ours is the next.
    port = _number(environment, "MASTER_PORT") + 1 if "MASTER_PORT" in environment else _FIRST_PORT
    return Membership(rank, size, local, local_size, host, port, "torchrun")


def _slurm(environment: Mapping[str, str]) -> Membership:
    rank, size = _number(environment, "SLURM_PROCID"), _number(environment, "SLURM_STEP_NUM_TASKS")
    local = _number(environment, "SLURM_LOCALID")
    local_size = _tasks_here(environment)
    host = environment.get("MASTER_ADDR") or _first_host(environment)
    job = int(re.sub(r"\D", "", environment.get("SLURM_JOB_ID", "")) or 0)
    step = int(re.sub(r"\D", "", environment.get("SLURM_STEP_ID", "")) or 0)
    port = _FIRST_PORT + (job * 7 + step) % _PORTS
    return Membership(rank, size, local, local_size, host, port, "slurm")


def _tasks_here(environment: Mapping[str, str]) -> int:
    """Tasks of this step on this node, out of a list as 4(x2),3."""
    counts: list[int] = []
    for part in environment.get("SLURM_STEP_TASKS_PER_NODE", "").split(","):
        match = re.fullmatch(r"(\d+)(?:\(x(\d+)\))?", part)
        if match:
            counts += [int(match[1])] * int(match[2] or 1)
    node = _number(environment, "SLURM_NODEID") if "SLURM_NODEID" in environment else 0
    return counts[node] if node < len(counts) else _number(environment, "SLURM_STEP_NUM_TASKS")


def _first_host(environment: Mapping[str, str]) -> str:
    """The first node of the step, by scontrol where the list is abbreviated (node[1-4])."""
    nodes = environment.get("SLURM_STEP_NODELIST") or environment.get("SLURM_NODELIST", "127.0.0.1")
    if not any(mark in nodes for mark in "[,"):
        return nodes
    answer = subprocess.run(
        ["scontrol", "show", "hostnames", nodes], capture_output=True, text=True, timeout=60
    )
    if answer.returncode or not answer.stdout.split():
        raise LongcaError(
            f"scontrol show hostnames {nodes}: {answer.stderr.strip()}; right: MASTER_ADDR with the first node's name"
        )
    return answer.stdout.split()[0]


def _number(environment: Mapping[str, str], name: str) -> int:
    try:
        return int(environment[name])
    except (KeyError, ValueError):
        raise LongcaError(
            f"{name}={environment.get(name)}: is no whole number, beside a rank's other variables"
        ) from None
