"""Becoming a rank: the device it computes on, and the process group of the world."""

from typing import Any

import torch
import torch.distributed as dist

from longca.errors import LongcaError
from longca.measure import device as devices
from longca.measure.world.place import Place
from longca.measure.world.together import PATIENCE


def own_device(place: Place) -> torch.device:
    """The device of this rank: a GPU of its own, or the CPU with the threads it is given.

    Raises LongcaError where there are fewer GPUs than ranks on this machine.
    """
    device = devices.choose_device(place.device)
    if device.type == "cpu":
        torch.set_num_threads(place.threads)
        return device
    here = torch.cuda.device_count()
    # A launcher may have bound each rank to one GPU already.
    bound = here == 1 and place.local_size > 1 and place.launched_elsewhere
    if place.local_rank >= here and not bound:
        raise LongcaError(
            f"{place.local_size} ranks on this machine, which shows {here} GPUs; right: one a rank"
        )
    device = torch.device("cuda", 0 if bound else place.local_rank)
    torch.cuda.set_device(device)
    return device


def join(place: Place, device: torch.device) -> dict[str, Any]:
    """Enter the world's process group, over NCCL on GPUs, over gloo on CPUs; what a record's environment says of it."""
    backend = "nccl" if device.type == "cuda" else "gloo"
    dist.init_process_group(
        backend,
        store=place.meeting.open(place.world_size),
        rank=place.rank,
        world_size=place.world_size,
        timeout=PATIENCE,
        device_id=device if backend == "nccl" else None,
    )
    said = {"network": backend, "ranks_per_host": place.local_size}
    return said | ({"nccl": ".".join(map(str, torch.cuda.nccl.version()))} if backend == "nccl" else {})
