"""Calling a library with flash-attention's interface: one function for whole sequences, one for packed ones."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from longca.kernels.interface import Prepared, Tensors, prepared
from longca.kernels.native_form import NativeForm

if TYPE_CHECKING:
    import torch


def flash_attention(
    whole: Callable[..., Any],
    packed: Callable[..., Any],
    form: NativeForm,
    tensors: Tensors,
    library: str,
    no_bound: int | None = -1,
) -> Prepared:
    """`whole(q, k, v, causal=)` or `(..., window_size=)` over [1, tokens, heads, head_dim]; for the varlen forms
    `packed(q, k, v, cu_seqlens_q=, cu_seqlens_k=, max_seqlen_q=, max_seqlen_k=, causal=)` without the batch dimension.

    no_bound: what the library calls a side of a window without bound. Of several results, out is the first.
    """
    backend = f"{library}, {form.name}"
    if form.packed is not None:
        (queries, keys), (longest_q, longest_k) = form.packed.on(tensors.q.device), form.packed.longest
        lengths = {
            "cu_seqlens_q": queries,
            "cu_seqlens_k": keys,
            "max_seqlen_q": longest_q,
            "max_seqlen_k": longest_k,
        }
        return prepared(
            lambda q, k, v: _out(packed(q, k, v, **lengths, causal=form.causal)), tensors, "shd", backend
        )
    windowed = form.left >= 0 or form.right >= 0
    sides = tuple(no_bound if side < 0 else side for side in (form.left, form.right))
    options: dict[str, Any] = {"window_size": sides} if windowed else {"causal": form.causal}
    return prepared(lambda q, k, v: _out(whole(q, k, v, **options)), tensors, "bshd", backend)


def _out(results: Any) -> "torch.Tensor":
    """Versions differ in whether the log-sum-exp comes along."""
    return results[0] if isinstance(results, tuple) else results
