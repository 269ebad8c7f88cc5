"""The Hopper backend: TMA, wgmma and warp specialisation, in Gluon."""

import functools
from typing import Any

import torch
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

from longca.ops.segments import host
from longca.ops.segments.device_plan import LOG2_E, DevicePlan, Tile
from longca.ops.segments.device_plan import prepare as prepare_device
from longca.ops.segments.gluon_backward import backward_kernel
from longca.ops.segments.gluon_forward import forward_kernel
from longca.ops.segments.gluon_forward_tall import tall_forward_kernel
from longca.ops.segments.pieces import SliceList
from longca.ops.segments.plan import Plan, Shape

FORWARD_TILES = {64: (Tile(128, 128, 4),), 128: (Tile(128, 128, 2), Tile(128, 64, 4))}
TALL_TILE = {128: Tile(192, 128, 2)}
BACKWARD_TILE = {64: Tile(128, 128, 2), 128: Tile(128, 64, 2)}
LINE = gl.NVMMASharedLayout(swizzle_byte_width=0, element_bitwidth=32, rank=1)
TYPES = {torch.bfloat16: gl.bfloat16, torch.float16: gl.float16, torch.float32: gl.float32}


def prepare(
    shape: Shape, masks: list[SliceList], device: torch.device, dtype: torch.dtype, deterministic: bool
) -> DevicePlan:
    """Raises ValueError for a head_dim or dtype the kernels are not written for."""
    if shape.head_dim not in FORWARD_TILES or dtype not in (torch.bfloat16, torch.float16):
        raise ValueError(
            f"the gluon backend takes head_dim 64 or 128 in 16 bits, not {shape.head_dim} in {dtype}"
        )
    tiles = FORWARD_TILES[shape.head_dim], BACKWARD_TILE[shape.head_dim]
    # a deterministic backward walks the forward's tiles for dQ, with a kernel that takes powers of two
    tall = None if deterministic else TALL_TILE.get(shape.head_dim)
    return prepare_device(shape, masks, device, *tiles, persistent=True, tall_tile=tall)


def forward(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, plan: Plan
) -> tuple[torch.Tensor, torch.Tensor]:
    """See longca.ops.segments.forward."""
    shape, schedule, tile = plan.shape, plan.prepared.forward, plan.prepared.forward_tile
    dim = shape.head_dim

    def launch(out: torch.Tensor, lse: torch.Tensor) -> None:
        kernel: Any = tall_forward_kernel if tile == TALL_TILE.get(dim) else forward_kernel
        kernel[(schedule.programs,)](
            _describe(q, 64, dim), _describe(k, tile.columns, dim), _describe(v, tile.columns, dim), out, lse,
            schedule.buffer, SCALE2=shape.scale * LOG2_E, WHOLE=schedule.whole, GROUP=shape.group,
            BLOCK_N=tile.columns, D=dim, STAGES=tile.stages, **host.TABLES, num_warps=4,
        )  # fmt: skip

    return host.forward(q, plan, launch)


def backward(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    out: torch.Tensor,
    lse: torch.Tensor,
    dout: torch.Tensor,
    plan: Plan,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """See longca.ops.segments.backward."""
    shape, schedule, tile = plan.shape, plan.prepared.backward, plan.prepared.backward_tile
    dim, rows, columns = shape.head_dim, tile.rows, tile.columns

    def launch(work: host.Gradients) -> None:
        backward_kernel[(schedule.programs,)](
            _describe(q, columns, dim), _describe(dout, columns, dim), _describe(k, rows, dim),
            _describe(v, rows, dim), _line(work.starts, columns), _line(work.deltas, columns),
            _describe(work.dq.view(-1, dim // 2), 128, 32), work.dk, work.dv, work.parts, schedule.buffer,
            work.starts.shape[1], SCALE=shape.scale, SUM_QUERIES=not plan.deterministic,
            HEADS_INSIDE=schedule.order == "heads_inside", WHOLE=schedule.whole,
            BLOCK_M=columns, D=dim, STAGES=tile.stages, **host.TABLES, num_warps=4,
        )  # fmt: skip

    return host.backward(q, k, v, out, lse, dout, plan, launch, fragments=True)


def _describe(x: torch.Tensor, rows: int, columns: int) -> TensorDescriptor:
    """Boxes of x [heads, rows, D] with its heads one after another."""
    return TensorDescriptor.from_tensor(
        x.view(-1, x.shape[-1]), [rows, columns], _layout(x.dtype, rows, columns)
    )


def _line(x: torch.Tensor, columns: int) -> TensorDescriptor:
    """Boxes of x [heads, rows] as one line."""
    return TensorDescriptor.from_tensor(x.view(-1), [columns], LINE)


@functools.cache
def _layout(dtype: torch.dtype, rows: int, columns: int) -> gl.NVMMASharedLayout:
    return gl.NVMMASharedLayout.get_default_for([rows, columns], TYPES[dtype])
