"""The public calls: a functional pair, and attention that autograd differentiates."""

import torch

from longca.ops.segments.plan import Plan, implementation


def forward(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, plan: Plan
) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention under the plan's mask.

    q [q_heads, queries, D], k and v [kv_heads, keys, D], contiguous, of the plan's dtype and
    device. Returns out like q and lse [q_heads, queries]: the natural logarithm of the softmax's
    denominator, fp32 (float64 for float64). A row that keeps nothing has out 0 and lse -inf. Raises
    ValueError for tensors the plan is not for.
    """
    _check(plan, q=q, k=k, v=v)
    return implementation(plan.backend).forward(q, k, v, plan)


def backward(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    out: torch.Tensor,
    lse: torch.Tensor,
    dout: torch.Tensor,
    plan: Plan,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Gradients dq, dk, dv, like q, k, v.

    out and lse may be merged over several parts of the keys (context parallelism): these are then
    the gradients through the merged softmax of the part the plan covers. Rows and keys that keep
    nothing get exactly 0.
    """
    _check(plan, q=q, k=k, v=v, out=out, dout=dout)
    return implementation(plan.backend).backward(q, k, v, out, lse, dout, plan)


def attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, plan: Plan
) -> tuple[torch.Tensor, torch.Tensor]:
    """`forward`, differentiable in q, k and v through out; lse carries no gradient."""
    return _Attention.apply(q, k, v, plan)


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: torch.autograd.function.FunctionCtx,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        plan: Plan,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        out, lse = forward(q, k, v, plan)
        ctx.save_for_backward(q, k, v, out, lse)
        ctx.mark_non_differentiable(lse)
        ctx.plan = plan
        return out, lse

    @staticmethod
    def backward(
        ctx: torch.autograd.function.FunctionCtx, dout: torch.Tensor, dlse: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, None]:
        return *backward(*ctx.saved_tensors, dout.contiguous(), ctx.plan), None


def _check(plan: Plan, **tensors: torch.Tensor) -> None:
    shape = plan.shape
    wide = {"q", "out", "dout"}
    for name, x in tensors.items():
        heads, rows = (shape.q_heads, shape.queries) if name in wide else (shape.kv_heads, shape.keys)
        if (
            x.shape != (heads, rows, shape.head_dim)
            or x.dtype != plan.dtype
            or x.device.type != plan.device.type
        ):
            raise ValueError(
                f"{name} is {tuple(x.shape)} {x.dtype} on {x.device.type}; the plan is for "
                f"{(heads, rows, shape.head_dim)} {plan.dtype} on {plan.device.type}"
            )
        if not x.is_contiguous():
            raise ValueError(f"{name} is not contiguous")
