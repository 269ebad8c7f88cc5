"""The calls: a functional pair, and attention that autograd takes."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch.autograd.function import once_differentiable
from triton.tools.tensor_descriptor import TensorDescriptor

from longca.ops.flashmask.forward_kernel import forward_kernel
from longca.ops.flashmask.keys_kernel import keys_kernel
from longca.ops.flashmask.plan import Plan, Walk
from longca.ops.flashmask.queries_kernel import queries_kernel

LOG2_E = 1.4426950408889634


def forward(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, plan: Plan
) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention under the plan's mask.

    q [q_heads, queries, D], k and v [kv_heads, keys, D], contiguous, on the plan's device. Returns out like q and lse
    fp32 [q_heads, queries]: the natural logarithm of the softmax's denominator. A row that keeps nothing has out 0 and
    lse -inf. Raises ValueError for tensors the plan is not for.
    """
    _check(plan, q=q, k=k, v=v)
    walk, out = plan.forward, torch.empty_like(q)
    lse = torch.empty(q.shape[:2], device=q.device, dtype=torch.float32)
    tile, tiles = walk.tile, len(walk.order)
    with _on(plan.device):
        forward_kernel[(tiles * plan.q_heads,)](
            _boxes(q, tile.rows), _boxes(k, tile.columns), _boxes(v, tile.columns), _boxes(out, tile.rows), lse,
            *_mask(plan, walk), tiles, plan.scale * LOG2_E, GROUP=plan.group, **_switches(plan, walk),
        )  # fmt: skip
    return out, lse


def backward(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    out: torch.Tensor,
    lse: torch.Tensor,
    dout: torch.Tensor,
    plan: Plan,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Gradients dq, dk, dv like q, k, v, bitwise the same every time. Rows and keys that keep nothing get exactly 0."""
    _check(plan, q=q, k=k, v=v, out=out, dout=dout)
    dq, dk, dv = torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)
    starts, deltas = torch.empty((2, *lse.shape), device=lse.device, dtype=torch.float32)
    parts = dk, dv
    if plan.splits > 1:
        shape = (2, plan.kv_heads * plan.splits, plan.keys, plan.head_dim)
        parts = tuple(torch.empty(shape, device=q.device, dtype=torch.float32))
    with _on(plan.device):
        _queries(q, k, v, out, dout, dq, starts, deltas, lse, plan)
        _keys(q, k, v, dout, *parts, starts, deltas, plan)
    if plan.splits > 1:
        dk, dv = (part.unflatten(0, (plan.kv_heads, -1)).sum(1).to(k.dtype) for part in parts)
    return dq, dk, dv


class Attention(torch.autograd.Function):
    """`forward`, differentiable in q, k and v."""

    @staticmethod
    def forward(ctx: Any, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, plan: Plan) -> torch.Tensor:
        """out; lse is kept for the backward."""
        out, lse = forward(q, k, v, plan)
        ctx.save_for_backward(q, k, v, out, lse)
        ctx.plan = plan
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dout: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """dq, dk, dv."""
        q, k, v, out, lse = ctx.saved_tensors
        return *backward(q, k, v, out, lse, dout.contiguous(), ctx.plan), None


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, plan: Plan) -> torch.Tensor:
    """out of `forward`, differentiable in q, k and v."""
    return Attention.apply(q, k, v, plan)


def _queries(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor, dout: torch.Tensor, dq: torch.Tensor,
    starts: torch.Tensor, deltas: torch.Tensor, lse: torch.Tensor, plan: Plan,
) -> None:  # fmt: skip
    walk = plan.backward_queries
    rows, columns, tiles = walk.tile.rows, walk.tile.columns, len(walk.order)
    queries_kernel[(tiles * plan.q_heads,)](
        _boxes(q, rows), _boxes(k, columns), _boxes(v, columns), _boxes(out, rows), _boxes(dout, rows),
        _boxes(dq, rows), starts, deltas, lse, *_mask(plan, walk), tiles, plan.scale, plan.scale * LOG2_E,
        GROUP=plan.group, **_switches(plan, walk),
    )  # fmt: skip


def _keys(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, dout: torch.Tensor, dk: torch.Tensor, dv: torch.Tensor,
    starts: torch.Tensor, deltas: torch.Tensor, plan: Plan,
) -> None:  # fmt: skip
    walk = plan.backward_keys
    rows, columns, blocks = walk.tile.rows, walk.tile.columns, len(walk.order)
    keys_kernel[(blocks * plan.kv_heads * plan.splits,)](
        _boxes(q, rows), _boxes(k, columns), _boxes(v, columns), _boxes(dout, rows), _boxes(dk, columns),
        _boxes(dv, columns), starts, deltas, *_mask(plan, walk), blocks, plan.scale, plan.scale * LOG2_E,
        HEADS=plan.group // plan.splits, SPLITS=plan.splits, **_switches(plan, walk),
    )  # fmt: skip


def _mask(plan: Plan, walk: Walk) -> tuple[Any, ...]:
    columns, blocks = plan.columns, walk.extrema.shape[1]
    return columns.vectors, walk.extrema, walk.spans, walk.order, plan.queries, columns.width, blocks


def _switches(plan: Plan, walk: Walk) -> dict[str, int | bool]:
    tile = walk.tile
    return {
        "SECTION": walk.section, "BLOCK_M": tile.rows, "BLOCK_N": tile.columns, "D": plan.head_dim,
        "CHUNK": plan.chunk, "STAGES": tile.stages, "num_warps": tile.warps, **plan.form,
    }  # fmt: skip


def _boxes(x: torch.Tensor, rows: int) -> TensorDescriptor:
    """Boxes of `rows` whole rows of one head of x; what lies past the last row reads as 0 and is not written."""
    return TensorDescriptor.from_tensor(x, [1, rows, x.shape[-1]])


def _on(device: torch.device) -> AbstractContextManager[object]:
    """Kernels are launched on the current device: make it the tensors'."""
    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()


def _check(plan: Plan, **tensors: torch.Tensor) -> None:
    for name, x in tensors.items():
        own = (plan.kv_heads, plan.keys) if name in ("k", "v") else (plan.q_heads, plan.queries)
        if x.shape != (*own, plan.head_dim) or x.device.type != plan.device.type or not x.is_contiguous():
            raise ValueError(
                f"{name} is {tuple(x.shape)} on {x.device}; the plan is for contiguous {(*own, plan.head_dim)} on "
                f"{plan.device}"
            )
