"""Block-sparse FlashAttention 2: the package block_sparse_attn, blocks of 128 x 128.

Given lists of kept blocks, a map a query head. Its entry sorts the map in every call; here it is sorted once,
while preparing. It is on no package index: its pin builds it from its repository.
"""

from longca.cases import Case
from longca.kernels.interface import Kernel, Prepared, Support, Tensors, prepared
from longca.masks.blocks import BlockMap

BLOCK = 128


def prepare(case: Case, mask: BlockMap, tensors: Tensors) -> Prepared:
    """A map for each query head, put into the library's lists once: its own entry sorts them anew in every call."""
    import torch
    from block_sparse_attn.block_sparse_attn_interface import (
        _block_sparse_attn_forward,
        convert_blockmask_row_reverse,
    )

    device = tensors.q.device
    kept = torch.from_numpy(mask.kept).to(device).repeat_interleave(case.q_heads // case.kv_heads, 0)
    lists = convert_blockmask_row_reverse(kept[None])
    # Head n takes map n - 1; 0 would be dense.
    maps = torch.arange(1, case.q_heads + 1, dtype=torch.int32, device=device)
    ends = torch.tensor([0, case.seqlen], dtype=torch.int32, device=device)

    def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return _block_sparse_attn_forward(
            *(q, k, v, ends, ends, BLOCK, BLOCK),
            *(maps, None, lists, case.seqlen, case.seqlen),
            p_dropout=0.0,
            softmax_scale=case.head_dim**-0.5,
            is_causal=False,
            exact_streaming=False,
            return_softmax=False,
            window_size_left=-1,
            window_size_right=-1,
        )[0]

    return prepared(attention, tensors, "shd", "block-sparse FA2, block mask")


KERNEL = Kernel(
    summary="block-sparse FlashAttention 2 of the package block_sparse_attn",
    support=Support(
        patterns=frozenset({"uniform_block"}),
        passes={"cuda": ("forward",)},
        head_dims=frozenset({32, 64, 128}),
        capability=(8, 0),
        blocks={"forward": frozenset({BLOCK})},
        without={
            "variable_block": "takes blocks of one size only",
            "backward": "only the forward of block_sparse_attn is adapted, as in the paper",
        },
    ),
    prepare=prepare,
    imports=("torch", "block_sparse_attn"),
    distributions=("torch", "block_sparse_attn"),
)
