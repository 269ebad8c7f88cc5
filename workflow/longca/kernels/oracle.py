"""Attention in float64, a few query rows at a time: what every kernel is checked against.

Written from the definition and sharing no code with any kernel or view: it reads the slices, or the kept blocks,
itself. With `rounded_to` it computes what the definition costs in a lower precision, from which error budgets are set.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from longca.masks.blocks import BlockMap
from longca.masks.mask import Mask

# Scores held at a time: what a cache holds on a CPU, what keeps a GPU busy on one.
_CHUNK_ELEMENTS = {"cpu": 1 << 21, "cuda": 1 << 25}

KeptRows = Callable[[int, int], torch.Tensor]


@dataclass(frozen=True)
class Attention:
    """out, dq [heads, queries, D]; lse [heads, queries], natural logarithm; dk, dv [keys, D], summed over the heads.

    `magnitude` is, by tensor and row, the size of the row were the signs of its terms independent (the root of the sum
    of squares). dq and dk are differences of such terms: of a row that sees one key only their rounding is left. Empty
    where the attention is a rounded one.
    """

    out: torch.Tensor
    lse: torch.Tensor
    dq: torch.Tensor
    dk: torch.Tensor
    dv: torch.Tensor
    magnitude: dict[str, torch.Tensor]


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
    nothing give out 0, lse -inf and gradients 0. With `rounded_to`, probabilities, their gradients and the results are
    rounded to that dtype where a fused kernel rounds them; sums stay in float64.
    """
    q, k, v, dout = (tensor.double() for tensor in (q, k, v, dout))
    heads, queries, head_dim = q.shape
    scale = head_dim**-0.5
    rounding = (lambda x: x) if rounded_to is None else (lambda x: x.to(rounded_to).double())
    out, dq = torch.zeros_like(q), torch.zeros_like(q)
    lse = q.new_full((heads, queries), float("-inf"))
    dk, dv = torch.zeros_like(k), torch.zeros_like(v)
    # Sums of squares of probabilities and of score gradients' terms, by row and by column.
    p_rows, p_columns, ds_rows, ds_columns = (torch.zeros_like(x) for x in (lse, k[:, 0], lse, k[:, 0]))
    value_size = _row_size(v)
    step = max(1, _CHUNK_ELEMENTS[q.device.type] // (heads * len(k)))
    for start in range(0, queries, step):
        rows = slice(start, min(start + step, queries))
        kept = kept_rows(rows.start, rows.stop)
        seen = kept.any(0).nonzero()
        if not len(seen):
            continue
        # Only keys from the first to the last that any of these rows sees: a window costs its width, not the length.
        columns = slice(int(seen[0]), int(seen[-1]) + 1)
        query, key, value, dout_rows = q[:, rows], k[columns], v[columns], dout[:, rows]
        scores = (query @ key.T * scale).masked_fill_(~kept[:, columns], float("-inf"))
        # Fused kernels round exp(score - greatest score) and divide its product with v; they never round p itself.
        most = scores.amax(-1, keepdim=True)
        unscaled = torch.exp_(scores.sub_(torch.where(most.isinf(), 0.0, most)))
        total = unscaled.sum(-1, keepdim=True)
        inverse = torch.where(total > 0, 1 / total, 0.0)
        lse[:, rows] = (most + total.log()).squeeze(-1)
        out[:, rows] = rounding(rounding(unscaled) @ value * inverse)
        p = unscaled.mul_(inverse)
        dv[columns] += rounding(p).flatten(0, 1).T @ dout_rows.flatten(0, 1)
        delta = (out[:, rows] * dout_rows).sum(-1, keepdim=True)
        dp = dout_rows @ value.T
        if rounded_to is None:
            _add_squares(p_rows[:, rows], p_columns[columns], p)
            # dp and delta are sums of head_dim terms: where those cancel, their rounding does not.
            typical = value_size * dout_rows.norm(dim=-1, keepdim=True) * head_dim**-0.5
            terms = p * (dp.abs() + delta.abs() + typical) * scale
            _add_squares(ds_rows[:, rows], ds_columns[columns], terms)
        ds = rounding(p * (dp - delta)) * scale
        dq[:, rows] = rounding(ds @ key)
        dk[columns] += ds.flatten(0, 1).T @ query.flatten(0, 1)
    if rounded_to is not None:
        return Attention(out, lse, dq, rounding(dk), rounding(dv), {})
    magnitude = {
        "out": p_rows.sqrt() * value_size,
        "dq": ds_rows.sqrt() * _row_size(k),
        "dk": ds_columns.sqrt() * _row_size(q),
        "dv": p_columns.sqrt() * _row_size(dout),
    }
    return Attention(out, lse, dq, dk, dv, magnitude)


def _add_squares(by_row: torch.Tensor, by_column: torch.Tensor, terms: torch.Tensor) -> None:
    squares = terms.square()
    by_row += squares.sum(-1)
    by_column += squares.sum((0, 1))


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
