"""The merge of two partial results as one kernel: each number is read and written once."""

# ruff: noqa: N803
# mypy: ignore-errors
import torch
import triton
import triton.language as tl

ROWS = 16


def merge_fused(
    result: torch.Tensor, out: torch.Tensor, lse: torch.Tensor, part: torch.Tensor, part_lse: torch.Tensor
) -> None:
    """longca.parallel.merge.merge_into on a GPU: lse, part_lse fp32, the others of any floating dtype, contiguous."""
    rows, head_dim = lse.numel(), out.shape[-1]
    if rows:
        columns = triton.next_power_of_2(head_dim)
        in_place = result.data_ptr() == out.data_ptr()
        grid = (triton.cdiv(rows, ROWS),)
        merge_kernel[grid](result, out, lse, part, part_lse, rows, head_dim, in_place, ROWS, columns)


@triton.jit
def merge_kernel(
    result,
    out,
    lse,
    part,
    part_lse,
    rows,
    head_dim,
    IN_PLACE: tl.constexpr,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """In place, rows whose partial keeps nothing are left as they are, unread where a whole block is so."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    inside = row < rows
    nothing = float("-inf")
    old = tl.load(lse + row, mask=inside, other=nothing)
    new = tl.load(part_lse + row, mask=inside, other=nothing)
    if (not IN_PLACE) or tl.max(new) > nothing:
        most = tl.maximum(old, new)
        most = tl.where(most == nothing, 0.0, most)
        total = most + tl.log(tl.exp(old - most) + tl.exp(new - most))
        weight = tl.where(new == nothing, 0.0, tl.exp(new - total))[:, None]
        column = tl.arange(0, COLUMNS)[None, :]
        at = row[:, None] * head_dim + column
        here = inside[:, None] & (column < head_dim)
        before = tl.load(out + at, mask=here, other=0.0).to(tl.float32)
        addend = tl.load(part + at, mask=here & (new != nothing)[:, None], other=0.0).to(tl.float32)
        merged = before + weight * (addend - before)
        # Several warps read the same rows: none may read what another has merged already.
        tl.debug_barrier()
        tl.store(lse + row, total, mask=inside)
        tl.store(result + at, merged.to(result.dtype.element_ty), mask=here)
