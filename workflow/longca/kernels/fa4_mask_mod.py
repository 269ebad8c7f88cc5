"""A mask_mod in FlashAttention 4's language, CuTe DSL; imported only where that library is."""

from collections.abc import Callable
from functools import cache
from typing import Any

import cutlass
from cutlass import cute
from flash_attn.cute import utils


@cache
def keep_intervals(layers: int) -> Callable[..., Any]:
    """Keeps key j for query i where low <= j < high in one of `layers` intervals of the query.

    aux_tensors: int32 [queries] each: low and high of the first layer, of the second, and so on.
    """

    @cute.jit
    def keep(batch, head, q_idx, kv_idx, seqlen_info, aux_tensors):  # type: ignore[no-untyped-def] # noqa: ANN
        row = q_idx[0]
        low = utils.scalar_to_ssa(aux_tensors[0][row], cutlass.Int32)
        high = utils.scalar_to_ssa(aux_tensors[1][row], cutlass.Int32)
        kept = (kv_idx >= low) & (kv_idx < high)
        for layer in cutlass.range_constexpr(1, layers):
            low = utils.scalar_to_ssa(aux_tensors[2 * layer][row], cutlass.Int32)
            high = utils.scalar_to_ssa(aux_tensors[2 * layer + 1][row], cutlass.Int32)
            kept = kept | ((kv_idx >= low) & (kv_idx < high))
        return kept

    return keep
