"""What a mask is prepared into for given shapes, and which backend serves a device."""

import importlib
import itertools
import math
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from numbers import Integral
from types import ModuleType
from typing import Any

import numpy as np
import torch

Piece = tuple[int, int, int, int, str]
# Pieces (q0, q1, k0, k1, type), or where all are full, and perhaps millions, an int64 array or tensor [n, 4] without
# the type.
Table = np.ndarray | torch.Tensor
SliceList = Sequence[Piece] | Table

BACKENDS = {
    "torch": "longca.ops.segments.torch_form",
    "triton": "longca.ops.segments.triton_form",
    "gluon": "longca.ops.segments.gluon_form",
}


@dataclass(frozen=True)
class Shape:
    """The sizes a plan serves; `scale` multiplies the scores before the softmax."""

    queries: int
    keys: int
    q_heads: int
    kv_heads: int
    head_dim: int
    scale: float

    @property
    def group(self) -> int:
        """Query heads that share a KV head."""
        return self.q_heads // self.kv_heads


@dataclass(frozen=True, eq=False)
class Plan:
    """A mask ready for `forward` and `backward`; `prepared` is the backend's own part."""

    shape: Shape
    dtype: torch.dtype
    device: torch.device
    backend: str
    deterministic: bool
    prepared: Any
    handle: int = field(default_factory=itertools.count().__next__)

    def __post_init__(self) -> None:
        LIVE[self.handle] = self


# Torch operators take no Python objects: a plan goes to them as its handle, for as long as it lives.
LIVE: "weakref.WeakValueDictionary[int, Plan]" = weakref.WeakValueDictionary()


def plan(
    slices: SliceList | Sequence[SliceList],
    queries: int,
    keys: int,
    q_heads: int,
    kv_heads: int,
    head_dim: int,
    dtype: torch.dtype,
    device: torch.device | str,
    backend: str | None = None,
    scale: float | None = None,
    deterministic: bool = False,
) -> Plan:
    """Prepares a mask for tensors of these shapes.

    `slices`: (q0, q1, k0, k1, type) pieces of one mask, or one such list for each KV head. A list whose pieces are
    all full may be an int64 array or tensor [n, 4] instead: block maps have many.
    `backend`: torch, triton or gluon; chosen by the device when None. `scale`: head_dim ** -0.5
    when None. `deterministic`: gradients are bitwise the same every time, for seven products a step
    instead of five. Raises ValueError for heads that do not divide, a wrong number of masks, a
    scale that is not positive, or a backend that cannot serve.
    """
    device = torch.device(device)
    if device.type == "cuda" and device.index is None:
        device = torch.device("cuda", torch.cuda.current_device())
    masks = _masks(slices)
    if q_heads % kv_heads:
        raise ValueError(f"q_heads {q_heads} is no multiple of kv_heads {kv_heads}")
    if len(masks) not in (1, kv_heads):
        raise ValueError(f"{len(masks)} masks for {kv_heads} KV heads: give one mask, or one a KV head")
    if scale is not None and not 0 < scale < math.inf:
        raise ValueError(f"scale {scale} must be a positive number")
    shape = Shape(queries, keys, q_heads, kv_heads, head_dim, head_dim**-0.5 if scale is None else scale)
    name = backend or choose_backend(shape, dtype, device)
    if name not in BACKENDS:
        raise ValueError(f"backend {name!r} is not one of {', '.join(BACKENDS)}")
    prepared = implementation(name).prepare(shape, masks, device, dtype, deterministic)
    return Plan(shape, dtype, device, name, deterministic, prepared)


def choose_backend(shape: Shape, dtype: torch.dtype, device: torch.device) -> str:
    """gluon on Hopper, triton on other GPUs, torch elsewhere and for what the kernels do not take."""
    if (
        device.type != "cuda"
        or dtype not in (torch.bfloat16, torch.float16)
        or shape.head_dim not in (64, 128)
    ):
        return "torch"
    hopper = torch.version.hip is None and torch.cuda.get_device_capability(device) == (9, 0)
    return "gluon" if hopper else "triton"


def implementation(backend: str) -> ModuleType:
    """The backend's module: prepare, forward, backward. Triton is imported only when asked for."""
    return importlib.import_module(BACKENDS[backend])


def all_full(masks: Sequence[SliceList]) -> bool:
    """Whether every piece keeps all its cells."""
    return all(isinstance(mask, Table) or all(piece[4] == "full" for piece in mask) for mask in masks)


def _masks(slices: SliceList | Sequence[SliceList]) -> list[SliceList]:
    """One mask or several, as a list: a mask's first piece starts with a number."""
    several = False
    if not isinstance(slices, Table) and len(slices):
        first = slices[0]
        several = isinstance(first, Table) or not len(first) or not isinstance(first[0], Integral)
    return list(slices) if several else [slices]  # type: ignore[arg-type, list-item]
