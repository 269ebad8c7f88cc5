"""FlexAttention with FlashAttention 4 as its backend.

The BlockMask of `flex`. Torch 2.11 takes a BlockMask whose mask_mod is missing or trivial for none with this
backend, and computes dense attention. Here every BlockMask has a mask_mod that reads its indices; a mask that
is ignored all the same is `wrong`.
"""

from typing import TYPE_CHECKING

from longca.cases import Case
from longca.kernels.dense.flex import BLOCK, compiled
from longca.kernels.interface import Kernel, Prepared, Support, Tensors
from longca.kernels.native_form import find_native_form
from longca.masks.mask import Mask
from longca.masks.patterns import PATTERNS

if TYPE_CHECKING:
    import torch
    from torch.nn.attention.flex_attention import BlockMask


def prepare(case: Case, mask: Mask, tensors: Tensors) -> Prepared:
    """The BlockMask of `flex`; the full mask as no BlockMask at all.

    Its mask_mod is never missing and never trivial, even where all blocks are full: torch 2.11 takes such a
    BlockMask for none with this backend, and computes dense attention.
    """
    from longca.masks.views.flex_torch import block_mask

    blocks = None
    if mask.area < case.seqlen**2:
        blocks = block_mask(mask.slices, case.seqlen, case.seqlen, BLOCK, tensors.q.device)
        _compare_without_lookup(blocks, mask)
    return compiled(tensors, blocks, kernel_options={"BACKEND": "FLASH"}, backend="flash-attn 4 by inductor")


def _compare_without_lookup(blocks: "BlockMask", mask: Mask) -> None:
    """Bounds of a causal mask or a window as numbers in the code: this backend reads no tensors without dimensions."""
    form = find_native_form(mask)
    if form is None or form.packed is not None:
        return
    left, right = form.left if form.left >= 0 else mask.seqlen, 0 if form.causal else form.right

    def keep(
        b: "torch.Tensor", h: "torch.Tensor", q_idx: "torch.Tensor", kv_idx: "torch.Tensor"
    ) -> "torch.Tensor":
        return (q_idx - kv_idx <= left) & (kv_idx - q_idx <= right)

    blocks.mask_mod = keep


KERNEL = Kernel(
    summary="torch.nn.attention.flex_attention with BACKEND=FLASH: FlashAttention 4 compiled for the mask",
    support=Support(
        patterns=frozenset(PATTERNS),
        passes={"cuda": ("forward", "backward")},
        capability=(9, 0),
    ),
    prepare=prepare,
    imports=("torch", "flash_attn.cute"),
    distributions=("torch", "triton", "flash-attn-4", "nvidia-cutlass-dsl"),
)
