"""What a block map is prepared into for given shapes, and which form of the forward serves them."""

from dataclasses import dataclass

import torch

from longca.masks.blocks import BlockMap
from longca.masks.views.block_lists import block_lists

BLOCK = 64
FORMS = ("triton", "gluon")
LOG2_E = 1.4426950408889634


@dataclass(frozen=True)
class Launch:
    """Steps of loads in flight, and warps of a program."""

    stages: int
    warps: int


@dataclass(frozen=True)
class Launches:
    """One launch for each kernel."""

    forward: Launch
    queries: Launch
    keys: Launch


# By head_dim. Two programs of 128 fit an SM.
TABLE = {
    64: Launches(Launch(3, 4), Launch(3, 4), Launch(3, 4)),
    128: Launches(Launch(3, 4), Launch(3, 4), Launch(2, 4)),
}
INTERPRETED = Launches(Launch(1, 4), Launch(1, 4), Launch(1, 4))


@dataclass(frozen=True, eq=False)
class Lists:
    """counts int32 [kv_heads, blocks]; lists int32 [kv_heads, blocks, width]: the kept blocks, ascending."""

    counts: torch.Tensor
    lists: torch.Tensor


@dataclass(frozen=True, eq=False)
class Plan:
    """A block map ready for tensors of these shapes. rows: for each block of queries its keys; columns: the transpose.

    form: of the forward, triton or gluon; the backward is Triton's.
    """

    seqlen: int
    block: int
    q_heads: int
    kv_heads: int
    head_dim: int
    device: torch.device
    rows: Lists
    columns: Lists
    form: str
    launches: Launches

    @property
    def group(self) -> int:
        """Query heads that share a KV head."""
        return self.q_heads // self.kv_heads

    @property
    def scale(self) -> float:
        """What multiplies the scores before the softmax."""
        return self.head_dim**-0.5

    @property
    def scale2(self) -> float:
        """What makes of scores the exponents of 2."""
        return self.scale * LOG2_E


def gluon_serves(block_map: BlockMap, head_dim: int) -> bool:
    """Its tiles are 64 rows of 128 numbers, and nothing masks the rows past the last block's end."""
    return block_map.block == BLOCK and block_map.seqlen % BLOCK == 0 and head_dim == 128


def choose_form(block_map: BlockMap, head_dim: int, device: torch.device) -> str:
    """gluon on Hopper for what it serves, else triton."""
    if device.type != "cuda" or torch.version.hip is not None:
        return "triton"
    hopper = torch.cuda.get_device_capability(device) == (9, 0)
    return "gluon" if hopper and gluon_serves(block_map, head_dim) else "triton"


def plan(
    block_map: BlockMap,
    q_heads: int,
    head_dim: int,
    device: torch.device,
    form: str | None = None,
    launches: Launches | None = None,
) -> Plan:
    """Makes both orientations of the map's lists on the device.

    form: of the forward, one of FORMS; by shape and device when None. launches: of the Triton kernels; by head_dim
    when None. Raises ValueError for blocks of several sizes, for heads that do not divide, for a form that cannot
    serve, and on a GPU for blocks of another size than 64 and a head_dim without an entry in the table.
    """
    if q_heads % block_map.kv_heads:
        raise ValueError(f"q_heads {q_heads} is no multiple of kv_heads {block_map.kv_heads}")
    if block_map.pattern != "uniform_block":
        raise ValueError(f"{block_map.pattern}: blocks must all have one size")
    form = form or choose_form(block_map, head_dim, device)
    if form not in FORMS:
        raise ValueError(f"form {form!r} is not one of {', '.join(FORMS)}")
    if form == "gluon" and not gluon_serves(block_map, head_dim):
        raise ValueError(
            f"seqlen {block_map.seqlen}, block {block_map.block}, head_dim {head_dim}: the gluon form takes whole "
            "blocks of 64 and head_dim 128"
        )
    if launches is None and device.type == "cuda":
        if block_map.block != BLOCK or head_dim not in TABLE:
            raise ValueError(
                f"block {block_map.block}, head_dim {head_dim}: takes blocks of 64, head_dim 64 or 128"
            )
        launches = TABLE[head_dim]
    rows, columns = (
        Lists(*block_lists(block_map, block_map.kv_heads, device, transpose)) for transpose in (False, True)
    )
    return Plan(
        block_map.seqlen, block_map.block, q_heads, block_map.kv_heads, head_dim, device, rows, columns, form,
        launches or INTERPRETED,
    )  # fmt: skip
