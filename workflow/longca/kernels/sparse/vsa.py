"""Video Sparse Attention: fastvideo-kernel's ThunderKittens kernels for Hopper, blocks of 64 x 64.

Given lists of kept blocks, in both orientations. The library's own entry builds its lists in every call, and
runs its Triton form without a word where `FASTVIDEO_KERNEL_VSA_FORCE_TRITON=1` is set, on another GPU, or
without its extension. Here the extension's two kernels are called themselves, over lists made while
preparing; that variable makes the case a `fallback`.
"""

import os
from typing import TYPE_CHECKING, Any

from longca.cases import Case
from longca.kernels.interface import FallbackError, Kernel, Prepared, Support, Tensors, prepared
from longca.masks.blocks import BlockMap

if TYPE_CHECKING:
    import torch

BLOCK = 64
# Set to 1, the library's own entry runs its Triton kernels without a word.
FORCE_TRITON = "FASTVIDEO_KERNEL_VSA_FORCE_TRITON"


def prepare(case: Case, mask: BlockMap, tensors: Tensors) -> Prepared:
    """Lists of kept blocks in both orientations, made once: the library's entry makes them anew in every call.

    Raises FallbackError where the environment, or an extension without these kernels, asks for the Triton form.
    """
    from fastvideo_kernel._C import fastvideo_kernel_ops as library

    if os.environ.get(FORCE_TRITON) == "1":
        raise FallbackError(f"{FORCE_TRITON}=1 asks for the library's Triton form, which is another kernel")
    if not (hasattr(library, "block_sparse_fwd") and hasattr(library, "block_sparse_bwd")):
        raise FallbackError("the library's extension has no block-sparse kernels; its Triton form would run")
    attention = _attention(library, mask, case.q_heads, tensors.q.device)
    return prepared(attention, tensors, "bhsd", "ThunderKittens, block lists")


def _attention(library: Any, mask: BlockMap, heads: int, device: "torch.device") -> Any:
    """The library's two kernels as one differentiable function of q, k, v [1, heads, seqlen, head_dim]."""
    import torch

    from longca.masks.views.block_lists import block_lists

    # As wide as the map: the kernels find a row's list by the width.
    (by_row, rows), (by_column, columns) = (
        [part[None] for part in block_lists(mask, heads, device, transpose, compact=False)]
        for transpose in (False, True)
    )
    sizes = torch.full((mask.seqlen // BLOCK,), BLOCK, dtype=torch.int32, device=device)

    class VideoSparseAttention(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
            out, lse = library.block_sparse_fwd(q, k, v, rows, by_row, sizes)
            ctx.save_for_backward(q, k, v, out, lse)
            return out

        @staticmethod
        def backward(ctx: Any, dout: torch.Tensor) -> tuple[torch.Tensor, ...]:
            gradients = library.block_sparse_bwd(*ctx.saved_tensors, dout, columns, by_column, sizes)
            return tuple(gradient.to(dout.dtype) for gradient in gradients)  # they come in float32

    return VideoSparseAttention.apply


KERNEL = Kernel(
    summary="Video Sparse Attention of fastvideo-kernel: ThunderKittens on Hopper",
    support=Support(
        patterns=frozenset({"uniform_block"}),
        passes={"cuda": ("forward", "backward")},
        dtypes=frozenset({"bfloat16"}),
        head_dims=frozenset({64, 128}),
        grouped_heads=False,
        capability=(9, 0),
        capability_below=(10, 0),
        blocks={"forward": frozenset({BLOCK}), "backward": frozenset({BLOCK})},
        seqlen_multiple=BLOCK,
        without={"variable_block": "takes blocks of one size only"},
    ),
    prepare=prepare,
    imports=("torch", "fastvideo_kernel._C.fastvideo_kernel_ops"),
    distributions=("torch", "fastvideo-kernel"),
)
