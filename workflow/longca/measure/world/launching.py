"""Ranks on several nodes: in a SLURM job `longca measure` starts itself once a rank, by one srun."""

import os
import sys
from collections.abc import Sequence
from typing import NamedTuple

from longca.cases import Series
from longca.errors import LongcaError
from longca.measure.slurm import NoAnswerError, find_job, own_job
from longca.study.model import Study


class Nodes(NamedTuple):
    """How ranks are spread: over so many nodes, the same number on each."""

    nodes: int
    ranks_each: int


def nodes_of(study: Study, world_size: int) -> Nodes:
    """The fewest nodes that hold `world_size` ranks, as many on each, none more than it has GPUs.

    GPUs of a node are those of the study's grid with that number of ranks; where several have it, the fewest.
    """
    here = min(grid.gpus_per_node for grid in study.context_parallel if world_size in grid.world_sizes)
    nodes = next(n for n in range(1, world_size + 1) if world_size % n == 0 and world_size // n <= here)
    return Nodes(nodes, world_size // nodes)


def launch_on_nodes(study: Study, series: Sequence[Series]) -> None:
    """Become the srun that starts this very command once a rank, where its series need several nodes of a SLURM job.

    Does nothing where they do not. Raises LongcaError for series of other numbers of ranks beside them, and where SLURM
    does not say what the job has.
    """
    number = own_job()
    sizes = sorted({one.world_size for one in series})
    if number is None or sizes == [1] or nodes_of(study, sizes[-1]).nodes == 1:
        return
    if len(sizes) > 1:
        several = ", ".join(map(str, sizes))
        raise LongcaError(
            f"measure: series of {several} ranks; right: over several nodes those of one number at a time, as "
            f"--only world_size={sizes[-1]}"
        )
    try:
        job = find_job(number)
    except NoAnswerError as error:
        raise LongcaError(f"measure: SLURM does not say what job {number} has: {error}") from error
    if job is None:
        raise LongcaError(f"measure: SLURM does not know job {number}; right: a job that runs")
    command = srun_command(nodes_of(study, sizes[0]), job.cpus)
    os.execvp(command[0], command)


def srun_command(spread: Nodes, cpus: int) -> list[str]:
    """This command under an srun of `spread`, which divides the job's `cpus` among the ranks."""
    ranks = spread.nodes * spread.ranks_each
    return [
        "srun",
        f"--nodes={spread.nodes}",
        f"--ntasks={ranks}",
        f"--ntasks-per-node={spread.ranks_each}",
        f"--cpus-per-task={max(1, cpus // ranks)}",
        sys.executable,
        "-m",
        "longca",
        *sys.argv[1:],
    ]
