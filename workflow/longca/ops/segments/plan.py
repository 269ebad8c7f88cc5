"""What a mask is prepared into for given shapes, and which backend serves a device."""

import importlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from operator import index
from types import ModuleType
from typing import Any

import torch

from longca.ops.segments.handle import issue
from longca.ops.segments.pieces import SliceList, read_masks

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
    """A mask ready for `forward` and `backward`; `prepared` is the backend's own part.

    handle: what stands for it in torch operators, another one for every copy.
    """

    shape: Shape
    dtype: torch.dtype
    device: torch.device
    backend: str
    deterministic: bool
    prepared: Any
    handle: torch.Tensor = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "handle", issue(self))

    def __reduce__(self) -> tuple[type["Plan"], tuple[Any, ...]]:
        return Plan, tuple(getattr(self, one.name) for one in fields(self) if one.init)


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

    `slices`: (q0, q1, k0, k1, type) pieces of one mask, or one such list for each KV head; no two of a mask keep the
    same cell, which is not looked at. A list whose pieces are all full may be an int64 array or tensor [n, 4] instead:
    block maps have many.
    `backend`: torch, triton or gluon; chosen by the device when None. `scale`: head_dim ** -0.5
    when None. `deterministic`: gradients are bitwise the same every time, for seven products a step
    instead of five. Raises ValueError for sizes out of range, heads that do not divide, pieces outside the mask or of
    no such type, a wrong number of masks, a scale that is not positive, or a backend that cannot serve.
    """
    # Plain numbers: kernels take no others.
    queries, keys, q_heads, kv_heads, head_dim = map(index, (queries, keys, q_heads, kv_heads, head_dim))
    if min(queries, keys) < 0 or min(q_heads, kv_heads, head_dim) < 1:
        raise ValueError(
            f"queries {queries}, keys {keys}, q_heads {q_heads}, kv_heads {kv_heads}, head_dim {head_dim}; "
            "right: no tokens below 0, all others from 1"
        )
    device = torch.empty(0, device=device).device  # with its number, where it has one
    masks = read_masks(slices, queries, keys)
    if q_heads % kv_heads:
        raise ValueError(f"q_heads {q_heads} is no multiple of kv_heads {kv_heads}")
    if len(masks) not in (1, kv_heads):
        raise ValueError(f"{len(masks)} masks for {kv_heads} KV heads: give one mask, or one a KV head")
    if scale is not None and not 0 < scale < math.inf:
        raise ValueError(f"scale {scale} must be a positive number")
    scale = head_dim**-0.5 if scale is None else float(scale)
    shape = Shape(queries, keys, q_heads, kv_heads, head_dim, scale)
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
