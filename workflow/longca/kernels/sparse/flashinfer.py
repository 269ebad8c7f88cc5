"""FlashInfer's variable-block-sparse attention, which takes a map for each KV head; forward only.

Given the map itself, with equal sizes where it is uniform: its other wrapper, `BlockSparseAttentionWrapper`,
has one map for all heads. Planning lists every kept key (4 bytes each: 7.7 GB at 48k tokens, 64 KV heads,
blocks of 64, density 0.8) and is `prepare_ms`; more than 2^31 of them are `unsupported`. A crash while
planning costs one case. With grouped heads its `run` copies q and out between layouts, which is part of its
time.
"""

import numpy as np

from longca.cases import Case
from longca.kernels.interface import Kernel, Prepared, Support, Tensors, UnsupportedError, prepared
from longca.masks.blocks import BlockMap
from longca.masks.patterns import DYNAMIC_PATTERNS

_WORKSPACE_BYTES = 128 << 20  # what the library's documentation recommends
_MOST_INDICES = 2**31 - 1


def prepare(case: Case, mask: BlockMap, tensors: Tensors) -> Prepared:
    """Plan over the map with its sizes; maps of one size go the same way, as its other wrapper has one map for all.

    The plan lists every kept key of every row of blocks. Raises UnsupportedError where these outnumber its 32 bits.
    """
    indices = listed_keys(mask)
    if indices > _MOST_INDICES:
        raise UnsupportedError(f"its plan lists {indices} keys, more than its int32 offsets can say")
    import torch
    from flashinfer import VariableBlockSparseAttentionWrapper

    device = tensors.q.device
    workspace = torch.empty(_WORKSPACE_BYTES, dtype=torch.uint8, device=device)
    wrapper = VariableBlockSparseAttentionWrapper(workspace)
    kept = torch.from_numpy(mask.kept).to(device)
    rows, columns = (
        torch.from_numpy(sizes.astype(np.int32)).to(device) for sizes in (mask.row_sizes, mask.column_sizes)
    )
    wrapper.plan(kept, rows, columns, case.q_heads, case.kv_heads, case.head_dim, q_data_type=tensors.q.dtype)
    # The library chooses while planning and names its choice nowhere else.
    return prepared(wrapper.run, tensors, "hsd", f"{wrapper._backend}, variable blocks")


def listed_keys(mask: BlockMap) -> int:
    """Kept keys of all rows of blocks, over all KV heads."""
    return int((mask.kept.sum(1) * mask.column_sizes).sum())


KERNEL = Kernel(
    summary="FlashInfer's VariableBlockSparseAttentionWrapper",
    support=Support(
        patterns=frozenset(DYNAMIC_PATTERNS),
        passes={"cuda": ("forward",)},
        head_dims=frozenset({64, 128}),
        capability=(8, 0),
        without={"backward": "FlashInfer has no backward"},
    ),
    prepare=prepare,
    imports=("torch", "flashinfer"),
    distributions=("torch", "flashinfer-python"),
)
