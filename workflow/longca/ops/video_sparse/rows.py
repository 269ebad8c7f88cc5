"""A block of rows of one head, and where whole key blocks end."""

# ruff: noqa: N803
# mypy: ignore-errors
import triton
import triton.language as tl


@triton.jit
def load_rows(desc, head, block, BLOCK: tl.constexpr, D: tl.constexpr):
    """[BLOCK, D].

    At head_dim 128 a permutation of no effect keeps the compiler from multiplying out of shared memory: as a left
    operand in registers the rows cost none of its bandwidth, which narrow steps of 64 keys are short of. At 64 ptxas
    12.8 would give probabilities the registers of the rows, which the next step still needs.
    """
    rows = desc.load([head, block * BLOCK, 0])
    if D == 128:
        rows = rows.permute(1, 0, 2)
    return rows.reshape(BLOCK, D)


@triton.jit
def store_rows(desc, head, block, rows, BLOCK: tl.constexpr, D: tl.constexpr):
    """The inverse of `load_rows`."""
    desc.store([head, block * BLOCK, 0], rows.reshape(1, BLOCK, D))


@triton.jit
def ends_inside(kept, last, keys, BLOCK: tl.constexpr):
    """Whether the keys end within a list's last block: lists ascend, so no other can be cut."""
    return (tl.load(kept + last) + 1) * BLOCK > keys
