"""What a cell's results should be and what its dtype costs, computed by the oracle once for all kernels of a run.

The oracle of a long sequence takes longer than the kernel it checks, and kernels in different processes ask for the
same one: what took long is kept in a folder that the run removes at its end.
"""

import hashlib
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

import torch

from longca.kernels.oracle import Attention, KeptRows, attend

Data = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]
"""q, k, v, dout of one KV group, as `attend` takes them."""

RESULTS = ("out", "dq", "dk", "dv")
# What took less is computed again sooner than read.
_WORTH_KEEPING_S = 0.5
# The folder's disk keeps so many times the size of what is put there free.
_ROOM = 4


@dataclass(frozen=True)
class Truth:
    """By tensor (RESULTS): exact in float64; by row the norm of what rounding costs, and the oracle's `magnitude`."""

    exact: dict[str, torch.Tensor]
    cost: dict[str, torch.Tensor]
    magnitude: dict[str, torch.Tensor]


@dataclass(frozen=True)
class Shared:
    """Where truths of a run are kept, and the name of this cell's mask there."""

    folder: Path
    mask_digest: str


def find_truth(data: Data, kept: KeptRows, dtype: torch.dtype, shared: Shared | None) -> Truth:
    """The truth of q, k, v, dout (as `attend` takes them), from the run's folder or the oracle."""
    file = None if shared is None else _file(shared, data, dtype)
    if file is not None and file.exists():
        return Truth(**torch.load(file, map_location=data[0].device, weights_only=True))
    start = time.perf_counter()
    truth = _compute(data, kept, dtype)
    if file is not None:
        if data[0].device.type == "cuda":
            torch.cuda.synchronize(data[0].device)
        if time.perf_counter() - start > _WORTH_KEEPING_S:
            _keep(truth, file)
    return truth


def _compute(data: Data, kept: KeptRows, dtype: torch.dtype) -> Truth:
    exact, rounded = attend(*data, kept), attend(*data, kept, rounded_to=dtype)
    tensors = {name: _of(exact, name) for name in RESULTS}
    cost = {name: (_of(rounded, name) - tensors[name]).norm(dim=-1) for name in RESULTS}
    return Truth(tensors, cost, exact.magnitude)


def _of(attention: Attention, name: str) -> torch.Tensor:
    tensor: torch.Tensor = getattr(attention, name)
    return tensor


def _file(shared: Shared, data: Data, dtype: torch.dtype) -> Path:
    """Named after the mask, the KV group's data and what decides how they are rounded."""
    sums = [repr(function(tensor.double()).item()) for tensor in data for function in (torch.sum, torch.norm)]
    shapes = [str(tuple(tensor.shape)) for tensor in data]
    name = hashlib.sha256("\0".join([shared.mask_digest, str(dtype), *shapes, *sums]).encode()).hexdigest()
    return shared.folder / f"{name[:24]}.pt"


def _keep(truth: Truth, file: Path) -> None:
    parts = {"exact": truth.exact, "cost": truth.cost, "magnitude": truth.magnitude}
    size = sum(tensor.nbytes for part in parts.values() for tensor in part.values())
    if shutil.disk_usage(file.parent).free > _ROOM * size:
        aside = file.with_suffix(".part")
        torch.save({name: {key: t.cpu() for key, t in part.items()} for name, part in parts.items()}, aside)
        aside.rename(file)
