"""Worlds of real ranks over gloo: one process a rank, forked from a server that has imported torch already."""

import json
import multiprocessing
import time
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["torch.distributed", "longca.ops.segments", "longca.parallel.mechanism"])


def start_world(size, function, argument, folder: Path, timeout_s=120.0):
    """Starts function(rank, argument) on every rank of a world; its result (JSON) goes to rank<r>.json in folder."""
    folder.mkdir(parents=True, exist_ok=True)
    processes = [
        _CONTEXT.Process(target=_rank, args=(function, rank, size, argument, folder, timeout_s))
        for rank in range(size)
    ]
    for process in processes:
        process.start()
    return processes


def run_world(size, function, argument, folder: Path, timeout_s=120.0):
    """The results of all ranks."""
    codes = exit_codes(start_world(size, function, argument, folder, timeout_s), timeout_s)
    assert codes == [0] * size
    return [json.loads((folder / f"rank{rank}.json").read_text()) for rank in range(size)]


def exit_codes(processes, within_s):
    """Exit codes of all ranks; None for those that were still there after so many seconds (they are ended)."""
    deadline = time.monotonic() + within_s
    for process in processes:
        process.join(max(0, deadline - time.monotonic()))
    codes = [process.exitcode for process in processes]
    for process in processes:
        process.kill()
        process.join()
    return codes


def _rank(function, rank, size, argument, folder, timeout_s):
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo",
        init_method=f"file://{folder / 'store'}",
        rank=rank,
        world_size=size,
        timeout=timedelta(seconds=timeout_s),
    )
    result = function(rank, argument)
    (folder / f"rank{rank}.json").write_text(json.dumps(result))
    dist.barrier()
    dist.destroy_process_group()
