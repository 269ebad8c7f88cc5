"""Partial attention over parts of the keys, merged as it comes: no list of partials is kept."""

import torch


def exact_dtype(dtype: torch.dtype) -> torch.dtype:
    """What sums are kept in: float32, or float64 for float64."""
    return torch.float64 if dtype == torch.float64 else torch.float32


def merge(out: torch.Tensor, lse: torch.Tensor, part: torch.Tensor, part_lse: torch.Tensor) -> None:
    """Merges a partial result into `out` [heads, rows, D] and `lse` [heads, rows], both exact, in place.

    lse' = max + log1p(exp(min - max)); out' = exp(lse - lse') out + exp(part_lse - lse') part, which is
    out + w (part - out) with w = exp(part_lse - lse'). Two empty partials stay 0 and -inf.
    """
    merge_into(out, out, lse, part, part_lse)


def merge_into(
    result: torch.Tensor, out: torch.Tensor, lse: torch.Tensor, part: torch.Tensor, part_lse: torch.Tensor
) -> None:
    """`merge` with out' written to `result`, of any floating dtype, which may be `out`. lse is merged in place."""
    if out.is_cuda and lse.dtype == torch.float32:
        from longca.parallel.merge_fused import merge_fused  # Triton is imported only where it is used

        merge_fused(result, out, lse, part, part_lse)
        return
    exact = exact_dtype(out.dtype)
    total = torch.logaddexp(lse, part_lse)
    weight = torch.where(part_lse == -torch.inf, 0.0, torch.exp(part_lse - total))
    result.copy_(torch.lerp(out.to(exact), part.to(exact), weight[..., None].to(exact)))
    lse.copy_(total)


class MergedAttention:
    """The merge of a rank's `parts` partial results; a single one is handed on as it is.

    Of two, their merge is written in the dtype of the result straight away. Of more, the running result is exact from
    the first on, and merged in place: so many take no more memory than two.
    """

    def __init__(self, parts: int) -> None:
        self._exactly = parts > 2
        self._running: tuple[torch.Tensor, torch.Tensor] | None = None
        self._last: tuple[torch.Tensor, torch.Tensor] | None = None

    def add(self, out: torch.Tensor, lse: torch.Tensor) -> None:
        """Takes a partial: out [heads, rows, D] in the tensors' dtype, lse [heads, rows]. It may be overwritten."""
        if self._running is None:
            self._running = (out.to(exact_dtype(out.dtype)) if self._exactly else out), lse
        elif self._exactly:
            merge(*self._running, out, lse)
        else:
            assert self._last is None, "more partial results than were announced"
            self._last = out, lse

    def result(self, q: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """out like q, and lse; 0 and -inf where no partial came."""
        if self._running is None:
            lse = torch.full(q.shape[:2], -torch.inf, dtype=exact_dtype(q.dtype), device=q.device)
            return torch.zeros_like(q), lse
        out, lse = self._running
        if self._last is not None:
            merge_into(out, out, lse, *self._last)
        return out.to(q.dtype), lse


class SummedGradient:
    """The sum of a rank's `parts` parts of dq, as MergedAttention has it; rounded once.

    The last part is added by `settle` or `result`, so that what waits for its kernel need not wait for the sum.
    """

    def __init__(self, parts: int) -> None:
        self._parts, self._added = parts, 0
        self._sum: torch.Tensor | None = None
        self._last: torch.Tensor | None = None

    def add(self, part: torch.Tensor) -> None:
        """Takes a part in the tensors' dtype. It may be overwritten."""
        self._added += 1
        if self._sum is None:
            self._sum = part.to(exact_dtype(part.dtype)) if self._parts > 2 else part
        elif self._added < self._parts:
            self._sum.add_(part)
        else:
            assert self._last is None, "more parts than were announced"
            self._last = part

    def settle(self) -> None:
        """Adds the last part, if it has come."""
        if self._sum is not None and self._last is not None:
            # Two parts are added in the wider dtype, and rounded once.
            self._sum.add_(self._last)
            self._last = None

    def result(self, like: torch.Tensor) -> torch.Tensor:
        """The sum in the dtype of `like`; 0 where no part came."""
        self.settle()
        return torch.zeros_like(like) if self._sum is None else self._sum.to(like.dtype)
