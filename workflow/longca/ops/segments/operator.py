"""The public calls: a functional pair, and attention that autograd and torch.compile take, as torch operators."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

from longca.ops.segments.handle import plan_of
from longca.ops.segments.plan import Plan, implementation


def forward(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, plan: Plan
) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention under the plan's mask.

    q [q_heads, queries, D], k and v [kv_heads, keys, D], contiguous, of the plan's dtype and device. Returns out
    like q and lse [q_heads, queries]: the natural logarithm of the softmax's denominator, fp32 (float64 for
    float64). A row that keeps nothing has out 0 and lse -inf. Raises ValueError for tensors the plan is not for.
    """
    _check(plan, q=q, k=k, v=v)
    with _on(plan.device):
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

    out and lse may be merged over several parts of the keys (context parallelism): these are then the gradients
    through the merged softmax of the part the plan covers. Rows and keys that keep nothing get exactly 0.
    """
    _check(plan, q=q, k=k, v=v, out=out, dout=dout)
    told = lse.shape, lse.dtype, lse.device
    if told != (q.shape[:2], _exact(q.dtype), q.device) or not lse.is_contiguous():
        raise ValueError(
            f"lse is {tuple(lse.shape)} {lse.dtype} on {lse.device}; the plan is for contiguous "
            f"{tuple(q.shape[:2])} {_exact(q.dtype)} on {q.device}"
        )
    with _on(plan.device):
        return implementation(plan.backend).backward(q, k, v, out, lse, dout, plan)


def attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, plan: Plan
) -> tuple[torch.Tensor, torch.Tensor]:
    """`forward`, differentiable in q, k and v through out; lse carries no gradient."""
    out, lse = _forward(q, k, v, plan.handle)
    return out, lse.detach()


# A CUDA graph replays the launches of the plan it was captured with, whichever handle it is given: not these.
_TAGS = (torch.Tag.cudagraph_unsafe,)


@torch.library.custom_op("longca::segments_forward", mutates_args=(), tags=_TAGS)
def _forward(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, handle: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    return forward(q, k, v, plan_of(handle))


@_forward.register_fake
def _(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, handle: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.empty_like(q), q.new_empty(q.shape[:2], dtype=_exact(q.dtype))


@torch.library.custom_op("longca::segments_backward", mutates_args=(), tags=_TAGS)
def _backward(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    out: torch.Tensor,
    lse: torch.Tensor,
    dout: torch.Tensor,
    handle: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return backward(q, k, v, out, lse, dout.contiguous(), plan_of(handle))


@_backward.register_fake
def _(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    out: torch.Tensor,
    lse: torch.Tensor,
    dout: torch.Tensor,
    handle: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    return torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)


def _save(ctx: Any, inputs: tuple[Any, ...], output: tuple[torch.Tensor, torch.Tensor]) -> None:
    ctx.save_for_backward(*inputs, *output)
    ctx.handle = inputs[3]  # itself: hooks may save a copy, and that would keep no plan


def _differentiate(
    ctx: Any, dout: torch.Tensor, dlse: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, None]:
    q, k, v, handle, out, lse = ctx.saved_tensors
    return *_backward(q, k, v, out, lse, dout, handle), None


_forward.register_autograd(_differentiate, setup_context=_save)


def _exact(dtype: torch.dtype) -> torch.dtype:
    """Of lse, for tensors of a dtype."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def _on(device: torch.device) -> AbstractContextManager[object]:
    """Kernels are launched on the current device: make it the tensors'."""
    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()


def _check(plan: Plan, **tensors: torch.Tensor) -> None:
    shape = plan.shape
    wide = {"q", "out", "dout"}
    for name, x in tensors.items():
        heads, rows = (shape.q_heads, shape.queries) if name in wide else (shape.kv_heads, shape.keys)
        if x.shape != (heads, rows, shape.head_dim) or x.dtype != plan.dtype or x.device != plan.device:
            raise ValueError(
                f"{name} is {tuple(x.shape)} {x.dtype} on {x.device}; the plan is for "
                f"{(heads, rows, shape.head_dim)} {plan.dtype} on {plan.device}"
            )
        if not x.is_contiguous():
            raise ValueError(f"{name} is not contiguous")
