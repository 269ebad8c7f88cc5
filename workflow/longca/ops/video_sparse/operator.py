"""The calls: a functional pair, and attention that autograd takes."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch.autograd.function import once_differentiable
from triton.tools.tensor_descriptor import TensorDescriptor

from longca.ops.video_sparse import gluon_form
from longca.ops.video_sparse.forward_kernel import forward_kernel
from longca.ops.video_sparse.keys_kernel import keys_kernel
from longca.ops.video_sparse.plan import Launch, Plan
from longca.ops.video_sparse.queries_kernel import queries_kernel


def forward(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, plan: Plan
) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention over the plan's kept blocks.

    q [q_heads, seqlen, D], k and v [kv_heads, seqlen, D], contiguous, on the plan's device. Returns out like q and lse
    fp32 [q_heads, seqlen]: the natural logarithm of the softmax's denominator. A row that keeps nothing has out 0 and
    lse -inf. Raises ValueError for tensors the plan is not for.
    """
    _check(plan, q=q, k=k, v=v)
    out = torch.empty_like(q)
    lse = torch.empty(q.shape[:2], device=q.device, dtype=torch.float32)
    with _on(plan.device):
        if plan.form == "gluon":
            gluon_form.forward(q, k, v, out, lse, plan)
            return out, lse
        forward_kernel[_by_rows(plan)](
            _boxes(q, plan), _boxes(k, plan), _boxes(v, plan), _boxes(out, plan), lse,
            *_rows(plan), plan.scale2, **_row_switches(plan, plan.launches.forward),
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
    with _on(plan.device):
        queries_kernel[_by_rows(plan)](
            _boxes(q, plan), _boxes(k, plan), _boxes(v, plan), _boxes(out, plan),
            _boxes(dout, plan), _boxes(dq, plan), starts, deltas, lse, *_rows(plan), plan.scale,
            plan.scale2, **_row_switches(plan, plan.launches.queries),
        )  # fmt: skip
        columns, launch = plan.columns, plan.launches.keys
        keys_kernel[(columns.counts.shape[1], plan.kv_heads)](
            _boxes(q, plan), _boxes(k, plan), _boxes(v, plan), _boxes(dout, plan), _boxes(dk, plan), _boxes(dv, plan),
            starts, deltas, columns.counts, columns.lists, columns.lists.shape[2], plan.seqlen, plan.scale,
            plan.scale2, **_switches(plan, launch),
        )  # fmt: skip
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


def _by_rows(plan: Plan) -> tuple[int, int]:
    return plan.rows.counts.shape[1], plan.q_heads


def _rows(plan: Plan) -> tuple[Any, ...]:
    lists = plan.rows.lists
    return plan.rows.counts, lists, lists.shape[2], plan.seqlen, plan.seqlen


def _switches(plan: Plan, launch: Launch) -> dict[str, int]:
    return {
        "GROUP": plan.group, "BLOCK": plan.block, "D": plan.head_dim, "STAGES": launch.stages,
        "num_warps": launch.warps,
    }  # fmt: skip


def _row_switches(plan: Plan, launch: Launch) -> dict[str, int]:
    return {"RAGGED": plan.seqlen % plan.block > 0, **_switches(plan, launch)}


def _boxes(x: torch.Tensor, plan: Plan) -> TensorDescriptor:
    """Boxes of a block's rows of a head of x; what lies past the last row reads as 0 and is not written."""
    return TensorDescriptor.from_tensor(x, [1, plan.block, plan.head_dim])


def _on(device: torch.device) -> AbstractContextManager[object]:
    """Kernels are launched on the current device: make it the tensors'."""
    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()


def _check(plan: Plan, **tensors: torch.Tensor) -> None:
    for name, x in tensors.items():
        own = (plan.kv_heads if name in ("k", "v") else plan.q_heads, plan.seqlen, plan.head_dim)
        if x.shape != own or x.device.type != plan.device.type or not x.is_contiguous():
            raise ValueError(
                f"{name} is {tuple(x.shape)} on {x.device}; the plan is for contiguous {own} on {plan.device}"
            )
