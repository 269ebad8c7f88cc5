"""Our own operator on block maps: each KV head's kept blocks are slices, and slices are segments.

Given runs of kept blocks. Its tiles cover two rows of blocks of 64 and compute what either keeps. Where that
is much more than the map keeps, on a GPU, it takes lists of kept blocks: the kernels of `vsa_triton`, on Hopper at
head_dim 128 and whole blocks with a forward of its own in Gluon. `backend` says which ran.
"""

from typing import TYPE_CHECKING

import numpy as np

from longca.cases import Case
from longca.kernels.interface import Kernel, Prepared, Support, Tensors, prepared
from longca.masks.blocks import BlockMap
from longca.masks.patterns import DYNAMIC_PATTERNS

if TYPE_CHECKING:
    import torch

    from longca.ops.segments.plan import Plan


# From this share kept of pairs on, runs are faster than lists. On an H200 (16384 tokens, 64:8, forward, TFLOP/s) runs
# reach 638 and lists 526 where pairs keep all; 216 and 528 at 0.83. Their times in between are taken as linear.
RUNS_FROM = 0.985


def prepare(case: Case, mask: BlockMap, tensors: Tensors) -> Prepared:
    """Lower every KV head's blocks to segments; any block size, any group.

    A tile of the segments kernels covers two rows of 64-token blocks and computes what either keeps. Where that is
    much more than the map keeps, the block lists of longca.ops.video_sparse serve the map, and `backend` says so.
    """
    from longca.ops import segments, video_sparse

    shape = case.q_heads, case.head_dim
    if tensors.q.device.type == "cuda" and _has_lists(case, mask) and kept_of_pairs(mask) < RUNS_FROM:
        lists = video_sparse.plan(mask, *shape, tensors.q.device)
        return prepared(
            lambda q, k, v: video_sparse.attention(q, k, v, lists),
            tensors,
            "hsd",
            f"{lists.form}, block lists",
        )
    planned = lower_map(mask, *shape, tensors.q.dtype, tensors.q.device)
    return prepared(
        lambda q, k, v: segments.attention(q, k, v, planned)[0],
        tensors,
        "hsd",
        f"{planned.backend}, segments",
    )


def kept_of_pairs(mask: BlockMap) -> float:
    """The share kept of what two neighbouring rows of blocks keep together, over the whole map; 1 of an empty one."""
    even, odd = mask.kept[:, ::2], mask.kept[:, 1::2]
    kept = np.count_nonzero(mask.kept)
    together = 2 * (kept - np.count_nonzero(even[:, : odd.shape[1]] & odd))
    return kept / together if together else 1.0


def _has_lists(case: Case, mask: BlockMap) -> bool:
    uniform = mask.pattern == "uniform_block" and mask.block == 64
    return uniform and case.head_dim in (64, 128) and case.dtype in ("bfloat16", "float16")


def lower_map(
    mask: BlockMap, q_heads: int, head_dim: int, dtype: "torch.dtype", device: "torch.device"
) -> "Plan":
    """The operator's plan of a map, for both passes."""
    from longca.masks.views.block_lists import rectangles
    from longca.ops.segments import plan

    shape = (mask.seqlen, mask.seqlen, q_heads, mask.kv_heads, head_dim)
    return plan(rectangles(mask, device), *shape, dtype, device)


KERNEL = Kernel(
    summary="longca's own kernel pair over the segments of each KV head's block map",
    support=Support(
        patterns=frozenset(DYNAMIC_PATTERNS),
        passes={"cpu": ("forward", "backward"), "cuda": ("forward", "backward")},
        dtypes=frozenset({"float32", "float16", "bfloat16"}),
    ),
    prepare=prepare,
    distributions=("torch", "triton"),
)
