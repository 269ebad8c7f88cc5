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
    if out.is_cuda and out.dtype == torch.float32:
        from longca.parallel.merge_fused import merge_fused  # Triton is imported only where it is used

        merge_fused(out, lse, part, part_lse)
        return
    total = torch.logaddexp(lse, part_lse)
    weight = torch.where(part_lse == -torch.inf, 0.0, torch.exp(part_lse - total))
    out.lerp_(part.to(out.dtype), weight[..., None])
    lse.copy_(total)


class MergedAttention:
    """The running merge of a rank's partial results; a single one is handed on as it is."""

    def __init__(self) -> None:
        self._out: torch.Tensor | None = None
        self._lse: torch.Tensor | None = None

    def add(self, out: torch.Tensor, lse: torch.Tensor) -> None:
        """Takes a partial: out [heads, rows, D] in the tensors' dtype, lse [heads, rows]. It may be overwritten."""
        if self._out is None or self._lse is None:
            self._out, self._lse = out, lse
            return
        self._out = self._out.to(exact_dtype(out.dtype))
        merge(self._out, self._lse, out, lse)

    def result(self, q: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """out like q, and lse; 0 and -inf where no partial came."""
        if self._out is None or self._lse is None:
            lse = torch.full(q.shape[:2], -torch.inf, dtype=exact_dtype(q.dtype), device=q.device)
            return torch.zeros_like(q), lse
        return self._out.to(q.dtype), self._lse


class SummedGradient:
    """The running sum of dq; a single part is handed on as it is."""

    def __init__(self) -> None:
        self._sum: torch.Tensor | None = None

    def add(self, part: torch.Tensor) -> None:
        """Takes a part in the tensors' dtype. It may be overwritten."""
        if self._sum is None:
            self._sum = part
        else:
            self._sum = self._sum.to(exact_dtype(part.dtype)).add_(part)

    def result(self, like: torch.Tensor) -> torch.Tensor:
        """The sum in the dtype of `like`; 0 where no part came."""
        return torch.zeros_like(like) if self._sum is None else self._sum.to(like.dtype)
