"""What a cell's results should be and what its dtype costs, computed by the oracle once for all kernels of a run.

The oracle of a long sequence takes longer than the kernel it checks, and kernels in different processes ask for the
same one: what takes long to compute, beside writing it, is kept in a folder that the run removes at its end.
"""

import hashlib
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

import torch

from longca.kernels.oracle import KeptRows, Results, attend
from longca.measure.tensor_file import read_tensors, write_tensors

Data = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]
"""q, k, v, dout of one KV group, as `attend` takes them."""

RESULTS = ("out", "dq", "dk", "dv")
# Written once, read by several kernels, and faster: worth this many times what computing took.
_READERS = 2
# The folder's disk keeps so many times the size of what is put there free.
_ROOM = 4


@dataclass(frozen=True)
class Truth:
    """By tensor (RESULTS), in float64: exact; by row its norm (size), that of what rounding costs, and `magnitude`."""

    exact: dict[str, torch.Tensor]
    size: dict[str, torch.Tensor]
    cost: dict[str, torch.Tensor]
    magnitude: dict[str, torch.Tensor]

    @classmethod
    def blank(cls, data: Data) -> "Truth":
        """A truth of these shapes, to be filled."""
        q, k = (torch.empty_like(tensor, dtype=torch.float64) for tensor in data[:2])
        like = {"out": q, "dq": q, "dk": k, "dv": k}
        exact = {name: torch.empty_like(tensor) for name, tensor in like.items()}
        size, cost, magnitude = (
            {name: tensor.new_empty(tensor.shape[:-1]) for name, tensor in like.items()} for _ in range(3)
        )
        return cls(exact, size, cost, magnitude)

    def tensors(self) -> list[torch.Tensor]:
        """All of them, in the order they have in a file."""
        parts = (self.exact, self.size, self.cost, self.magnitude)
        return [part[name] for part in parts for name in RESULTS]


@dataclass(frozen=True)
class Shared:
    """Where truths of a run are kept, and the name of this cell's mask there."""

    folder: Path
    mask_digest: str


def find_truth(data: Data, kept: KeptRows, dtype: torch.dtype, shared: Shared | None) -> Truth:
    """The truth of q, k, v, dout (as `attend` takes them), from the run's folder or the oracle."""
    file = None if shared is None else _file(shared, data, dtype)
    if file is not None and file.exists():
        truth = Truth.blank(data)
        read_tensors(file, truth.tensors())
        return truth
    start = time.perf_counter()
    truth = _compute(data, kept, dtype)
    if file is not None:
        if data[0].device.type == "cuda":
            torch.cuda.synchronize(data[0].device)
        _keep(truth, file, computed_for_s=time.perf_counter() - start)
    return truth


def _compute(data: Data, kept: KeptRows, dtype: torch.dtype) -> Truth:
    found = attend(*data, kept, rounded_to=dtype)
    assert found.rounded is not None
    exact, rounded = _by_name(found), _by_name(found.rounded)
    size = {name: exact[name].norm(dim=-1) for name in RESULTS}
    cost = {name: rounded[name].sub_(exact[name]).norm(dim=-1) for name in RESULTS}
    return Truth(exact, size, cost, found.magnitude)


def _by_name(results: Results) -> dict[str, torch.Tensor]:
    return {name: getattr(results, name) for name in RESULTS}


def _file(shared: Shared, data: Data, dtype: torch.dtype) -> Path:
    """Named after the mask, the KV group's data and what decides how they are rounded."""
    sums = [repr(function(tensor.double()).item()) for tensor in data for function in (torch.sum, torch.norm)]
    shapes = [str(tuple(tensor.shape)) for tensor in data]
    name = hashlib.sha256("\0".join([shared.mask_digest, str(dtype), *shapes, *sums]).encode()).hexdigest()
    return shared.folder / f"{name[:24]}.truth"


def _keep(truth: Truth, file: Path, computed_for_s: float) -> None:
    tensors = truth.tensors()
    if shutil.disk_usage(file.parent).free > _ROOM * sum(tensor.nbytes for tensor in tensors):
        write_tensors(file, tensors, within_s=_READERS * computed_for_s)
