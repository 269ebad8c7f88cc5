"""The host side that both GPU backends share: buffers, rows without work, and the kernels around a backward."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import triton
from triton.tools.tensor_descriptor import TensorDescriptor

from longca.ops.segments.device_plan import LOG2_E, STAT_ALIGN
from longca.ops.segments.elementwise import (
    add_parts_kernel,
    finish_fragments_kernel,
    finish_kernel,
    prepare_kernel,
)
from longca.ops.segments.items import ITEM
from longca.ops.segments.plan import Plan
from longca.ops.segments.schedule import HEADER, SEGMENT
from longca.ops.segments.triton_queries import queries_kernel

TABLES = {"ITEM": ITEM, "SEGMENT": SEGMENT, "HEADER": HEADER}
ROWS, CELLS, PART_ROWS = 64, 4096, 32


@dataclass(frozen=True)
class Gradients:
    """What the main kernel of a backward writes, and reads beside q, k, v and dout.

    starts, deltas fp32 [q_heads, stat rows]: -lse / scale and -rowsum(out * dout). dq fp32 [q_heads, rows, D],
    cleared: the kernel adds to it unless the plan is deterministic. parts fp32 [slots, 2, tile
    rows, D].
    """

    starts: torch.Tensor
    deltas: torch.Tensor
    dq: torch.Tensor
    dk: torch.Tensor
    dv: torch.Tensor
    parts: torch.Tensor


def forward(
    q: torch.Tensor, plan: Plan, launch: Callable[[torch.Tensor, torch.Tensor], None]
) -> tuple[torch.Tensor, torch.Tensor]:
    """out and lse, which `launch` writes wherever a tile has work."""
    idle = plan.prepared.forward.idle
    out = torch.zeros_like(q) if idle else torch.empty_like(q)
    lse = torch.empty(q.shape[:2], device=q.device, dtype=torch.float32)
    if idle:
        lse.fill_(-torch.inf)
    if plan.prepared.forward.programs:
        launch(out, lse)
    return out, lse


def backward(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    out: torch.Tensor,
    lse: torch.Tensor,
    dout: torch.Tensor,
    plan: Plan,
    launch: Callable[[Gradients], None],
    fragments: bool = False,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """dq, dk, dv: `launch` is the main kernel.

    `fragments`: it leaves dQ's sum as finish_fragments_kernel takes it, a head's rows padded to STAT_ALIGN.
    """
    shape, schedule = plan.shape, plan.prepared.backward
    tile_rows, dim = plan.prepared.backward_tile.rows, shape.head_dim
    stat_rows = -(-shape.queries // STAT_ALIGN) * STAT_ALIGN
    exact = q.new_empty(0, dtype=torch.float32)
    starts, deltas = stat = exact.new_empty((2, shape.q_heads, stat_rows))
    parts = exact.new_empty((max(schedule.slots, 1), 2, tile_rows, dim))
    make = torch.zeros_like if schedule.idle else torch.empty_like
    dq_rows = stat_rows if fragments else shape.queries
    work = Gradients(starts, deltas, exact.new_empty((shape.q_heads, dq_rows, dim)), make(k), make(v), parts)
    prepare_kernel[(triton.cdiv(shape.queries, ROWS), shape.q_heads)](
        out, dout, lse, stat, work.dq, shape.queries, dq_rows, stat_rows, shape.q_heads * stat_rows, 1 / shape.scale,
        BLOCK=ROWS, D=dim,
    )  # fmt: skip
    if schedule.programs:
        launch(work)
    dq = (
        _ordered_queries(q, k, v, dout, work, plan)
        if plan.deterministic
        else _summed_queries(work.dq, q, plan, fragments)
    )
    if len(schedule.splits):
        rows = min(PART_ROWS, tile_rows)
        add_parts_kernel[(len(schedule.splits), 2, tile_rows // rows)](
            schedule.splits,
            parts,
            work.dk,
            work.dv,
            shape.keys,
            shape.scale,
            TILE=tile_rows,
            ROWS=rows,
            D=dim,
        )
    return dq, work.dk, work.dv


def describe(x: torch.Tensor, rows: int) -> TensorDescriptor:
    """Boxes of `rows` whole rows of x [heads, rows, D]; heads follow one another."""
    return TensorDescriptor.from_tensor(x.view(-1, x.shape[-1]), [rows, x.shape[-1]])


def _summed_queries(summed: torch.Tensor, q: torch.Tensor, plan: Plan, fragments: bool) -> torch.Tensor:
    dq = torch.empty_like(q)
    if fragments:
        heads, padded, dim = summed.shape
        finish_fragments_kernel[(triton.cdiv(padded, ROWS), heads)](
            summed, dq, plan.shape.scale, q.shape[1], padded, ROWS=ROWS, D=dim, num_warps=8
        )
        return dq
    finish_kernel[(triton.cdiv(q.numel(), CELLS),)](
        summed, dq, plan.shape.scale, q.numel(), BLOCK=CELLS, num_warps=8
    )
    return dq


def _ordered_queries(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, dout: torch.Tensor, work: Gradients, plan: Plan
) -> torch.Tensor:
    shape, schedule, tile = plan.shape, plan.prepared.forward, plan.prepared.forward_tile
    dq = torch.zeros_like(q) if schedule.idle else torch.empty_like(q)
    if schedule.programs:
        queries_kernel[(schedule.programs,)](
            describe(q, tile.rows), describe(dout, tile.rows), describe(k, tile.columns),
            describe(v, tile.columns), work.starts, work.deltas, dq, schedule.buffer, shape.queries, shape.keys,
            work.starts.shape[1], shape.scale * LOG2_E, shape.scale, GROUP=shape.group, BLOCK_M=tile.rows,
            BLOCK_N=tile.columns, D=shape.head_dim, STAGES=1, **TABLES, num_warps=8,
        )  # fmt: skip
    return dq
