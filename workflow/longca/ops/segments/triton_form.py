"""The portable backend: any GPU that Triton knows, and its interpreter on a CPU."""

import torch
from triton.runtime import driver

from longca.ops.segments import host
from longca.ops.segments.device_plan import LOG2_E, DevicePlan, Tile
from longca.ops.segments.device_plan import prepare as prepare_device
from longca.ops.segments.pieces import SliceList
from longca.ops.segments.plan import Plan, Shape
from longca.ops.segments.triton_backward import backward_kernel
from longca.ops.segments.triton_forward import forward_kernel

WARPS = 8
HEAD_DIMS = (16, 32, 64, 128)
DTYPES = (torch.bfloat16, torch.float16, torch.float32)
FORWARD_TILE = Tile(128, 64, 3)
# By the shared memory a block may have: compiled for head_dim 128, the first takes up to 194 KiB on Hopper and 113 KiB
# on Ampere, the second 73 KiB there, the third 53 KiB.
BACKWARD_TILES = ((160 << 10, Tile(128, 64, 3)), (96 << 10, Tile(64, 64, 2)), (0, Tile(64, 32, 2)))


def prepare(
    shape: Shape, masks: list[SliceList], device: torch.device, dtype: torch.dtype, deterministic: bool
) -> DevicePlan:
    """On a CPU, where only the interpreter runs, tiles are small: few tokens then cross many.

    Raises ValueError for a head_dim or dtype the kernels are not written for.
    """
    if shape.head_dim not in HEAD_DIMS or dtype not in DTYPES:
        raise ValueError(
            f"the triton backend takes head_dim {', '.join(map(str, HEAD_DIMS))} in 16 or 32 bits, "
            f"not {shape.head_dim} in {dtype}"
        )
    if device.type == "cuda":
        shared = driver.active.utils.get_device_properties(device.index)["max_shared_mem"]
        forward_tile, backward_tile = (
            FORWARD_TILE,
            next(tile for least, tile in BACKWARD_TILES if shared >= least),
        )
    else:
        forward_tile = backward_tile = Tile(64, 32, 1)
    return prepare_device(shape, masks, device, (forward_tile,), backward_tile, persistent=False)


def forward(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, plan: Plan
) -> tuple[torch.Tensor, torch.Tensor]:
    """See longca.ops.segments.forward."""
    shape, schedule, tile = plan.shape, plan.prepared.forward, plan.prepared.forward_tile

    def launch(out: torch.Tensor, lse: torch.Tensor) -> None:
        forward_kernel[(schedule.programs,)](
            host.describe(q, tile.rows), host.describe(k, tile.columns), host.describe(v, tile.columns), out, lse,
            schedule.buffer, shape.queries, shape.keys, shape.scale * LOG2_E, GROUP=shape.group,
            BLOCK_M=tile.rows, BLOCK_N=tile.columns, D=shape.head_dim, STAGES=tile.stages, **host.TABLES,
            num_warps=WARPS,
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
    reduce = q.is_cuda and torch.version.hip is None and torch.cuda.get_device_capability(q.device) >= (9, 0)

    def launch(work: host.Gradients) -> None:
        backward_kernel[(schedule.programs,)](
            host.describe(q, tile.columns), host.describe(dout, tile.columns), host.describe(k, tile.rows),
            host.describe(v, tile.rows), work.starts, work.deltas,
            host.describe(work.dq, tile.columns) if reduce else work.dq, work.dk, work.dv, work.parts, schedule.buffer,
            shape.queries, shape.keys, work.starts.shape[1], shape.scale * LOG2_E, shape.scale,
            BLOCK_M=tile.columns, BLOCK_N=tile.rows, D=shape.head_dim, STAGES=tile.stages, TMA_REDUCE=reduce,
            SUM_QUERIES=not plan.deterministic,
            **host.TABLES, num_warps=WARPS,
        )  # fmt: skip

    return host.backward(q, k, v, out, lse, dout, plan, launch)
