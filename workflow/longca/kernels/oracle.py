"""Attention in float64, a few query rows at a time: what every kernel is checked against.

Written from the definition and sharing no code with any kernel or view: it reads the slices, or the kept blocks,
itself. With `rounded_to` it computes beside it what the definition costs in a lower precision, from which error budgets
are set.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

from longca.masks.blocks import BlockMap
from longca.masks.mask import Mask

# Scores held at a time: what a cache holds on a CPU, what keeps a GPU busy on one.
_CHUNK_ELEMENTS = {"cpu": 1 << 21, "cuda": 1 << 25}

KeptRows = Callable[[int, int], torch.Tensor]
Rounding = Callable[[torch.Tensor], torch.Tensor]


@dataclass(frozen=True)
class Results:
    """out, dq [heads, queries, D]; dk, dv [keys, D], summed over the heads."""

    out: torch.Tensor
    dq: torch.Tensor
    dk: torch.Tensor
    dv: torch.Tensor


@dataclass(frozen=True)
class Attention(Results):
    """The exact results; lse [heads, queries], natural logarithm; `rounded`, where asked for.

    `magnitude` is, by tensor and row, the size of the row were the signs of its terms independent (the root of the sum
    of squares). dq and dk are differences of such terms: of a row that sees one key only their rounding is left.
    """

    lse: torch.Tensor
    magnitude: dict[str, torch.Tensor]
    rounded: Results | None


def attend(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    dout: torch.Tensor,
    kept_rows: KeptRows,
    rounded_to: torch.dtype | None = None,
) -> Attention:
    """Attention of one key-value head and the query heads that share it, with its gradients, in float64.

    q, dout [heads, queries, D]; k, v [keys, D]; kept_rows(start, stop) -> bool [stop - start, keys]. Rows that keep
    nothing give out 0, lse -inf and gradients 0. With `rounded_to` there are `rounded` results, too: probabilities,
    their gradients and the results rounded to that dtype where a fused kernel rounds them; sums stay in float64.
    """
    q, k, v, dout = (tensor.double() for tensor in (q, k, v, dout))
    scale = q.shape[-1] ** -0.5
    scaled_q = q * scale
    exact = _zeros(q, k)
    walks: list[tuple[Results, Rounding]] = [(exact, lambda x: x)]
    if rounded_to is not None:
        walks.append((_zeros(q, k), lambda x: x.to(rounded_to).double()))
    lse = torch.full_like(q[:, :, 0], float("-inf"))
    # Roots of the sums of squares of probabilities and of score gradients' terms by row; the sums by column.
    p_rows, p_columns, ds_rows, ds_columns = (torch.zeros_like(x) for x in (lse, k[:, 0], lse, k[:, 0]))
    value_size = _row_size(v)
    for rows, columns, kept in _pieces(q, k, kept_rows):
        query, key, value, dout_rows = scaled_q[:, rows], k[columns], v[columns], dout[:, rows]
        scores = (query @ key.T).masked_fill_(~kept, float("-inf"))
        # Fused kernels round exp(score - greatest score) and divide its product with v; they never round p itself.
        most = scores.amax(-1, keepdim=True)
        unscaled = scores.sub_(torch.where(most.isinf(), 0.0, most)).exp_()
        total = unscaled.sum(-1, keepdim=True)
        inverse = torch.where(total > 0, 1 / total, 0.0)
        lse[:, rows] = (most + total.log()).squeeze(-1)
        for result, rounding in walks:
            result.out[:, rows] = rounding(rounding(unscaled) @ value * inverse)
        p = unscaled.mul_(inverse)
        dp = dout_rows @ value.T
        for result, rounding in walks:
            result.dv[columns] += rounding(p).flatten(0, 1).T @ dout_rows.flatten(0, 1)
            ds = rounding((dp - _delta(result, rows, dout_rows)).mul_(p))
            result.dq[:, rows] = rounding(ds @ key * scale)
            result.dk[columns] += ds.flatten(0, 1).T @ query.flatten(0, 1)
        _add_norms(p_rows[:, rows], p_columns[columns], p)
        # dp and delta are sums of head_dim terms: where those cancel, their rounding does not.
        typical = value_size * dout_rows.norm(dim=-1, keepdim=True) * scale
        terms = dp.abs_().add_(_delta(exact, rows, dout_rows).abs() + typical).mul_(p)
        _add_norms(ds_rows[:, rows], ds_columns[columns], terms)
    magnitude = {
        "out": p_rows * value_size,
        "dq": ds_rows * scale * _row_size(k),
        "dk": ds_columns.sqrt() * scale * _row_size(q),
        "dv": p_columns.sqrt() * _row_size(dout),
    }
    rounded = None
    for result, rounding in walks[1:]:
        rounded = Results(result.out, result.dq, rounding(result.dk), rounding(result.dv))
    return Attention(exact.out, exact.dq, exact.dk, exact.dv, lse, magnitude, rounded)


def _zeros(q: torch.Tensor, k: torch.Tensor) -> Results:
    return Results(*(torch.zeros_like(tensor) for tensor in (q, q, k, k)))


def _pieces(
    q: torch.Tensor, k: torch.Tensor, kept_rows: KeptRows
) -> Iterator[tuple[slice, slice, torch.Tensor]]:
    """Rows, the keys from the first to the last that any of them sees, and what they keep of those.

    So a window costs its width, not the length, and where rows see few keys more of them go at a time. Rows that see
    nothing are left out.
    """
    (heads, queries, _), keys, chunk = q.shape, len(k), _CHUNK_ELEMENTS[q.device.type]
    block = max(1, chunk // keys)
    for start in range(0, queries, block):
        kept = kept_rows(start, min(start + block, queries))
        seen = _seen(kept)
        step = max(1, chunk // (heads * max(1, seen.stop - seen.start)))
        for first in range(0, len(kept), step):
            piece = kept[first : first + step]
            columns = _seen(piece)
            if columns.stop:
                yield slice(start + first, start + first + len(piece)), columns, piece[:, columns]


def _seen(kept: torch.Tensor) -> slice:
    """From the first to the last key that any row keeps; slice(0, 0) where there is none."""
    seen = kept.any(0).nonzero()
    return slice(int(seen[0]), int(seen[-1]) + 1) if len(seen) else slice(0, 0)


def _delta(result: Results, rows: slice, dout_rows: torch.Tensor) -> torch.Tensor:
    return (result.out[:, rows] * dout_rows).sum(-1, keepdim=True)


def _add_norms(by_row: torch.Tensor, squares_by_column: torch.Tensor, terms: torch.Tensor) -> None:
    by_row += torch.linalg.vector_norm(terms, dim=-1)
    squares_by_column += torch.linalg.vector_norm(terms, dim=(0, 1)).square()


def _row_size(tensor: torch.Tensor) -> float:
    """The root mean square of the norms of a tensor's rows."""
    return float(tensor.square().sum(-1).mean().sqrt())


def kept_rows(mask: Mask | BlockMap, kv_head: int, device: torch.device) -> KeptRows:
    """Rows of a mask as booleans on `device`, for one key-value head of a block map."""
    return _kept_blocks(mask, kv_head, device) if isinstance(mask, BlockMap) else _kept_slices(mask, device)


def _kept_slices(mask: Mask, device: torch.device) -> KeptRows:
    def rows(start: int, stop: int) -> torch.Tensor:
        kept = torch.zeros(stop - start, mask.seqlen, dtype=torch.bool, device=device)
        for q0, q1, k0, k1, kind in mask.slices:
            first, last = max(q0, start), min(q1, stop)
            if first >= last:
                continue
            row = torch.arange(first - q0, last - q0, device=device)[:, None]
            column = torch.arange(k1 - k0, device=device)[None, :]
            cells = torch.ones(last - first, k1 - k0, dtype=torch.bool, device=device)
            if kind in ("causal", "bi_causal"):
                cells &= column <= row + (k1 - k0) - (q1 - q0)
            if kind in ("inv_causal", "bi_causal"):
                cells &= column >= row
            kept[first - start : last - start, k0:k1] |= cells
        return kept

    return rows


def _kept_blocks(blocks: BlockMap, kv_head: int, device: torch.device) -> KeptRows:
    def owners(sizes: object) -> torch.Tensor:
        counts = torch.as_tensor(sizes, device=device)
        return torch.repeat_interleave(torch.arange(len(counts), device=device), counts)

    row_block, column_block = owners(blocks.row_sizes[kv_head]), owners(blocks.column_sizes[kv_head])
    kept = torch.as_tensor(blocks.kept[kv_head], device=device)

    def rows(start: int, stop: int) -> torch.Tensor:
        return kept[row_block[start:stop]][:, column_block]

    return rows
