"""The merge of two partial results as one kernel: each number is read and written once."""

# ruff: noqa: N803
# mypy: ignore-errors
import torch
import triton
import triton.language as tl

ROWS = 16


def merge_fused(out: torch.Tensor, lse: torch.Tensor, part: torch.Tensor, part_lse: torch.Tensor) -> None:
    """longca.parallel.merge.merge on a GPU: out, lse, part_lse fp32, part in any floating dtype, contiguous."""
    rows, head_dim = lse.numel(), out.shape[-1]
    if rows:
        columns = triton.next_power_of_2(head_dim)
        merge_kernel[(triton.cdiv(rows, ROWS),)](out, lse, part, part_lse, rows, head_dim, ROWS, columns)


@triton.jit
def merge_kernel(out, lse, part, part_lse, rows, head_dim, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Rows whose partial keeps nothing are left as they are, and their numbers unread where a whole block is so."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    inside = row < rows
    nothing = float("-inf")
    old = tl.load(lse + row, mask=inside, other=nothing)
    new = tl.load(part_lse + row, mask=inside, other=nothing)
    if tl.max(new) > nothing:
        most = tl.maximum(old, new)
        most = tl.where(most == nothing, 0.0, most)
        total = most + tl.log(tl.exp(old - most) + tl.exp(new - most))
        weight = tl.where(new == nothing, 0.0, tl.exp(new - total))[:, None]
        tl.store(lse + row, total, mask=inside)
        column = tl.arange(0, COLUMNS)[None, :]
        at = row[:, None] * head_dim + column
        here = inside[:, None] & (column < head_dim)
        before = tl.load(out + at, mask=here, other=0.0)
        addend = tl.load(part + at, mask=here, other=0.0).to(tl.float32)
        tl.store(out + at, before + weight * (addend - before), mask=here)
