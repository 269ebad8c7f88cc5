"""FlexAttention, compiled, over a BlockMask built from the slices.

The mask is a BlockMask with blocks of 128, full ones without a mask_mod; the full pattern is none at all.
Where torch would run uncompiled without a word, which writes the whole score matrix, it is an error here.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from longca.cases import Case
from longca.kernels.interface import Kernel, Prepared, Support, Tensors, prepared
from longca.masks.mask import Mask
from longca.masks.patterns import PATTERNS

if TYPE_CHECKING:
    from torch.nn.attention.flex_attention import BlockMask

BLOCK = 128

# FlexAttention's own words where it is asked for gradients on a CPU (torch 2.13).
NO_BACKWARD_ON_CPU = "FlexAttention does not support backward on CPU"


def prepare(case: Case, mask: Mask, tensors: Tensors) -> Prepared:
    """The mask as blocks of 128, full ones without a mask_mod; the full mask as no BlockMask at all."""
    from longca.masks.views.flex_torch import block_mask

    blocks = None
    if mask.area < case.seqlen**2:
        blocks = block_mask(mask.slices, case.seqlen, case.seqlen, BLOCK, tensors.q.device)
    return compiled(tensors, blocks)


def compiled(
    tensors: Tensors,
    blocks: "BlockMask | None",
    kernel_options: Any = None,
    inductor_options: Mapping[str, Any] | None = None,
    backend: str = "inductor",
) -> Prepared:
    """FlexAttention compiled for static shapes; it raises where it would silently run uncompiled.

    kernel_options are FlexAttention's own, inductor_options the compiler's; None leaves torch its defaults.
    """
    import torch
    from torch.nn.attention.flex_attention import flex_attention

    # Past the recompile limit torch runs the eager form, which writes the whole score matrix: an error here instead.
    torch._dynamo.config.fail_on_recompile_limit_hit = True
    torch._dynamo.config.recompile_limit = 256
    attention = torch.compile(
        flex_attention,
        dynamic=False,
        fullgraph=True,
        options=dict(inductor_options) if inductor_options else None,
    )
    form = "no mask" if blocks is None else "block mask"
    return prepared(
        lambda q, k, v: attention(q, k, v, block_mask=blocks, enable_gqa=True, kernel_options=kernel_options),
        tensors,
        "bhsd",
        f"{backend}, {form}",
    )


KERNEL = Kernel(
    summary="torch.nn.attention.flex_attention, compiled by inductor",
    support=Support(
        patterns=frozenset(PATTERNS),
        passes={"cpu": ("forward",), "cuda": ("forward", "backward")},
        dtypes=frozenset({"float32", "float16", "bfloat16"}),
        without={"backward": NO_BACKWARD_ON_CPU},
    ),
    prepare=prepare,
    distributions=("torch", "triton"),
)
