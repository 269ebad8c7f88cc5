"""FlexAttention over a BlockMask of each head's own blocks.

Given a BlockMask, a structure a query head; blocks are multiples of 32. Torch's default tile on Hopper is 128
wide. For blocks of 64 both passes get tiles of 64 x 64: the forward by `kernel_options`, the backward by
these and `max_autotune`, without which torch (2.11, 2.13) drops its only candidate before it reads the
options; `deterministic` keeps it from timing a dozen copies of one candidate. Variable maps are laid over a
grid of 128, whose partial blocks are masked: much of what the map leaves out is computed then.
"""

from typing import Any

from longca.cases import Case
from longca.kernels.dense.flex import NO_BACKWARD_ON_CPU, compiled
from longca.kernels.interface import Kernel, Prepared, Support, Tensors, UnsupportedError
from longca.masks.blocks import BlockMap
from longca.masks.patterns import DYNAMIC_PATTERNS

# The largest tile of torch's defaults for Hopper.
_DEFAULT_TILE = 128
# Tiles smaller than that which torch has candidates of, in both passes.
_SMALLER_TILES = (64, 32)
# Torch drops the candidate tiles that do not divide a block before it reads kernel_options, and its default is the
# only candidate of a backward unless max_autotune is on. deterministic takes the first that is left, unmeasured:
# with the tile fixed by kernel_options they are all the same one.
_MORE_CANDIDATES = {"max_autotune": True, "deterministic": True}


def prepare(case: Case, mask: BlockMap, tensors: Tensors) -> Prepared:
    """The block map as a BlockMask with one structure a query head.

    Raises UnsupportedError on a GPU for blocks that no tile divides.
    """
    from longca.masks.views.flex_torch import map_block_mask

    blocks = map_block_mask(mask, case.q_heads, tensors.q.device)
    size = blocks.BLOCK_SIZE[0]
    if tensors.q.device.type == "cpu" or size % _DEFAULT_TILE == 0:
        return compiled(tensors, blocks)
    return compiled(tensors, blocks, tile_options(size), _MORE_CANDIDATES)


def tile_options(block: int) -> dict[str, Any]:
    """FlexAttention's options for the largest tile of both passes that divides a block. Raises UnsupportedError."""
    tile = next((tile for tile in _SMALLER_TILES if block % tile == 0), None)
    if tile is None:
        raise UnsupportedError(f"blocks of {block} tokens are no multiple of 32, FlexAttention's least tile")
    sides = ("fwd_BLOCK_M", "fwd_BLOCK_N", "bwd_BLOCK_M1", "bwd_BLOCK_N1", "bwd_BLOCK_M2", "bwd_BLOCK_N2")
    return dict.fromkeys(sides, tile) | {"num_warps": 4, "num_stages": 3}


KERNEL = Kernel(
    summary="torch.nn.attention.flex_attention, compiled by inductor, over each head's block map",
    support=Support(
        patterns=frozenset(DYNAMIC_PATTERNS),
        passes={"cpu": ("forward",), "cuda": ("forward", "backward")},
        dtypes=frozenset({"float32", "float16", "bfloat16"}),
        without={"backward": NO_BACKWARD_ON_CPU},
    ),
    prepare=prepare,
    distributions=("torch", "triton"),
)
