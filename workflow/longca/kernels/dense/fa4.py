"""FlashAttention 4 (flash-attn-4, CuTe DSL): native forms, and mask_mod with block sparsity for every other mask.

Masks without a native form go as blocks of 128 x 128 for both passes, on Hopper alone: full blocks are not
masked, in the others a mask_mod in CuTe DSL compares a key with the intervals of its query. Each variant
compiles for seconds: that is `compile_ms`. It is the module `flash_attn`, as for `fa`.
"""

from typing import TYPE_CHECKING

from longca.cases import Case
from longca.kernels.flash_attention import flash_attention
from longca.kernels.interface import Kernel, Prepared, Support, Tensors, UnsupportedError, prepared
from longca.kernels.native_form import find_native_form
from longca.masks.mask import Mask
from longca.masks.patterns import PATTERNS

if TYPE_CHECKING:
    import torch

# On Hopper its tiles are 128 x 128, and a sparse block must be a multiple of the one and exactly the other.
BLOCK = 128


def prepare(case: Case, mask: Mask, tensors: Tensors) -> Prepared:
    """Causal, window or packed sequences where the mask has that form; else blocks, the partial ones masked by row."""
    from flash_attn.cute import flash_attn_func, flash_attn_varlen_func

    form = find_native_form(mask)
    if form is not None:
        return flash_attention(
            flash_attn_func, flash_attn_varlen_func, form, tensors, "flash-attn 4", no_bound=None
        )
    return _block_sparse(mask, tensors)


def _block_sparse(mask: Mask, tensors: Tensors) -> Prepared:
    import torch
    from flash_attn.cute import flash_attn_func
    from flash_attn.cute.block_sparsity import BlockSparseTensorsTorch

    from longca.kernels.fa4_mask_mod import keep_intervals
    from longca.masks.views import flex
    from longca.masks.views.flex_torch import block_mask

    device = tensors.q.device
    if torch.cuda.get_device_capability(device)[0] != 9:
        raise UnsupportedError(f"block sparsity is laid out for Hopper's tiles of {BLOCK} x {BLOCK} alone")
    blocks = block_mask(mask.slices, mask.seqlen, mask.seqlen, BLOCK, device)
    by_query = BlockSparseTensorsTorch(
        blocks.kv_num_blocks,
        blocks.kv_indices,
        blocks.full_kv_num_blocks,
        blocks.full_kv_indices,
        block_size=(BLOCK, BLOCK),
    )
    by_key = BlockSparseTensorsTorch(
        blocks.q_num_blocks,
        blocks.q_indices,
        blocks.full_q_num_blocks,
        blocks.full_q_indices,
        block_size=(BLOCK, BLOCK),
    )
    view = flex.lower(mask.slices, mask.seqlen, mask.seqlen, BLOCK)
    bounds = [
        torch.from_numpy(row).to(device) for pair in zip(view.low, view.high, strict=True) for row in pair
    ]
    keep = keep_intervals(len(view.low))

    def attention(q: "torch.Tensor", k: "torch.Tensor", v: "torch.Tensor") -> "torch.Tensor":
        return flash_attn_func(
            q,
            k,
            v,
            mask_mod=keep,
            aux_tensors=bounds,
            block_sparse_tensors=by_query,
            block_sparse_tensors_bwd=by_key,
        )[0]

    return prepared(attention, tensors, "bshd", "flash-attn 4, mask_mod and block sparsity")


KERNEL = Kernel(
    summary="FlashAttention 4: flash-attn-4, CuTe DSL; mask_mod and block sparsity where it has no native form",
    support=Support(
        patterns=frozenset(PATTERNS),
        passes={"cuda": ("forward", "backward")},
        capability=(9, 0),
    ),
    prepare=prepare,
    imports=("torch", "flash_attn.cute"),
    distributions=("torch", "flash-attn-4", "nvidia-cutlass-dsl"),
)
