"""FlashAttention 4 (CuTe DSL) with its own block-sparse form.

Given `block_sparse_tensors`, every kept block a full one. On Hopper its backward walks 128 keys at a time, so
blocks of 64 have a forward alone.
"""

from longca.cases import Case
from longca.kernels.interface import Kernel, Prepared, Support, Tensors, prepared
from longca.masks.blocks import BlockMap


def prepare(case: Case, mask: BlockMap, tensors: Tensors) -> Prepared:
    """Every kept block as a full one, without a mask_mod; a second list, by columns, for the backward."""
    import torch
    from flash_attn.cute import flash_attn_func
    from flash_attn.cute.block_sparsity import BlockSparseTensorsTorch

    from longca.masks.views.block_lists import block_lists

    device = tensors.q.device

    def blocks(transpose: bool) -> BlockSparseTensorsTorch:
        counts, lists = (part[None] for part in block_lists(mask, case.q_heads, device, transpose))
        return BlockSparseTensorsTorch(
            mask_block_cnt=torch.zeros_like(counts),
            mask_block_idx=torch.zeros_like(lists[..., :1]),
            full_block_cnt=counts,
            full_block_idx=lists,
            block_size=(mask.block, mask.block),
        )

    by_row = blocks(transpose=False)
    by_column = blocks(transpose=True) if tensors.gradients else None

    def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return flash_attn_func(q, k, v, block_sparse_tensors=by_row, block_sparse_tensors_bwd=by_column)[0]

    return prepared(attention, tensors, "bshd", "CuTe DSL, block_sparse_tensors")


KERNEL = Kernel(
    summary="FlashAttention 4 (CuTe DSL) over block_sparse_tensors",
    support=Support(
        patterns=frozenset({"uniform_block"}),
        passes={"cuda": ("forward", "backward")},
        head_dims=frozenset({64, 128}),
        # Elsewhere its tiles are others. Here the forward's shrinks to blocks of 64, the backward's 128 keys do not.
        capability=(9, 0),
        capability_below=(10, 0),
        blocks={"forward": frozenset({64, 128}), "backward": frozenset({128})},
        seqlen_multiple=128,
        without={"variable_block": "takes blocks of one size only"},
    ),
    prepare=prepare,
    imports=("torch", "flash_attn.cute"),
    distributions=("torch", "flash-attn-4", "nvidia-cutlass-dsl"),
)
