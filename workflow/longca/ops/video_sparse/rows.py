"""A block of rows of the query heads that share a program, and where whole key blocks end."""

# ruff: noqa: N803
# mypy: ignore-errors
import triton
import triton.language as tl


@triton.jit
def load_rows(desc, head, block, PACK: tl.constexpr, BLOCK: tl.constexpr, D: tl.constexpr):
    """[BLOCK * PACK, D]: the heads take turns row by row.

    The permutation keeps the compiler from multiplying out of shared memory: as a left operand in registers the rows
    cost none of its bandwidth, which narrow steps of 64 keys are short of.
    """
    return desc.load([head, block * BLOCK, 0]).permute(1, 0, 2).reshape(BLOCK * PACK, D)


@triton.jit
def store_rows(desc, head, block, rows, PACK: tl.constexpr, BLOCK: tl.constexpr, D: tl.constexpr):
    """The inverse of `load_rows`."""
    desc.store([head, block * BLOCK, 0], rows.reshape(BLOCK, PACK, D).permute(1, 0, 2))


@triton.jit
def ends_inside(kept, last, keys, BLOCK: tl.constexpr):
    """Whether the keys end within a list's last block: lists ascend, so no other can be cut."""
    return (tl.load(kept + last) + 1) * BLOCK > keys
