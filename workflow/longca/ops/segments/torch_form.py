"""Attention over segments in plain torch: any device, any floating dtype, no rows x columns array.

For a tile of queries and a run of keys, all query heads of a group are one batched product. Whole
steps are not masked; keys outside every run are never read. Sums are in fp32, or in float64 for
float64 tensors.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

import numpy as np
import torch

from longca.masks.views.segments import Segments, lower
from longca.ops.segments.pieces import SliceList, Table
from longca.ops.segments.plan import Plan, Shape

P = ParamSpec("P")
R = TypeVar("R")
TILE_QUERIES, TILE_KEYS = 128, 64
CHUNK_STEPS = (
    32  # steps of keys that share one product: long enough for the matrix library, small beside a cache
)


@dataclass(frozen=True)
class TorchPlan:
    """One lowered mask for each KV head, or a single one that all share."""

    masks: tuple[Segments, ...]


@dataclass(frozen=True)
class _Chunk:
    """Keys [begin, end) of one tile's run, and which of their cells a row keeps (None: all)."""

    begin: int
    end: int
    outside: torch.Tensor | None


def prepare(
    shape: Shape, masks: list[SliceList], device: torch.device, dtype: torch.dtype, deterministic: bool
) -> TorchPlan:
    """Lowers the masks on the host."""
    pieces = ([(*row, "full") for row in m.tolist()] if isinstance(m, Table) else m for m in masks)
    return TorchPlan(tuple(lower(m, shape.queries, shape.keys, TILE_QUERIES, TILE_KEYS) for m in pieces))


def _plain(call: Callable[Concatenate[torch.Tensor, P], R]) -> Callable[Concatenate[torch.Tensor, P], R]:
    """A call like a kernel's: no product in another dtype than it is written in, nothing recorded to differentiate."""

    @wraps(call)
    def run(q: torch.Tensor, *others: P.args, **named: P.kwargs) -> R:
        with torch.no_grad(), torch.autocast(q.device.type, enabled=False):
            return call(q, *others, **named)

    return run


@_plain
def forward(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, plan: Plan
) -> tuple[torch.Tensor, torch.Tensor]:
    """See longca.ops.segments.forward."""
    exact = torch.float64 if q.dtype == torch.float64 else torch.float32
    out = torch.zeros_like(q)
    lse = torch.full(q.shape[:2], -torch.inf, dtype=exact, device=q.device)
    scale, group = plan.shape.scale, plan.shape.group
    for heads, kv, segments in _head_groups(plan):
        key, value = k[kv].to(exact), v[kv].to(exact)
        for rows, chunks in _tiles(segments, q.device):
            query = _grouped(q[heads, rows], group).to(exact) * scale
            most = query.new_full(query.shape[:2], -torch.inf)
            total = torch.zeros_like(most)
            gathered = torch.zeros_like(query)
            for chunk in chunks:
                scores = _scores(query, key, chunk, group)
                new = torch.maximum(most, scores.amax(-1))
                shift = torch.where(new == -torch.inf, 0.0, new)
                weights = scores.sub_(shift[..., None]).exp_()
                rescale = torch.exp(most - shift)
                total = total * rescale + weights.sum(-1)
                gathered.mul_(rescale[..., None]).baddbmm_(weights, value[:, chunk.begin : chunk.end])
                most = new
            some = total > 0
            gathered.mul_(torch.where(some, 1 / total, 0.0)[..., None])
            tile = (heads.stop - heads.start, rows.stop - rows.start)
            out[heads, rows] = gathered.view(*tile, -1).to(q.dtype)
            lse[heads, rows] = torch.where(some, most + total.log(), -torch.inf).view(tile)
    return out, lse


@_plain
def backward(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    out: torch.Tensor,
    lse: torch.Tensor,
    dout: torch.Tensor,
    plan: Plan,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """See longca.ops.segments.backward."""
    exact = torch.float64 if q.dtype == torch.float64 else torch.float32
    dq = torch.zeros_like(q)
    dk, dv = torch.zeros_like(k, dtype=exact), torch.zeros_like(v, dtype=exact)
    scale, group = plan.shape.scale, plan.shape.group
    for heads, kv, segments in _head_groups(plan):
        key, value = k[kv].to(exact), v[kv].to(exact)
        for rows, chunks in _tiles(segments, q.device):
            query = _grouped(q[heads, rows], group).to(exact) * scale
            gradient = _grouped(dout[heads, rows], group).to(exact)
            delta = (_grouped(out[heads, rows], group).to(exact) * gradient).sum(-1, keepdim=True)
            shift = _grouped(lse[heads, rows, None], group).to(exact)
            shift = torch.where(shift == -torch.inf, 0.0, shift)
            gathered = torch.zeros_like(query)
            for chunk in chunks:
                keys = slice(chunk.begin, chunk.end)
                weights = _scores(query, key, chunk, group).sub_(shift).exp_()
                dv[kv, keys] += weights.mT @ gradient
                ds = (gradient @ value[:, keys].mT).sub_(delta).mul_(weights)
                gathered.baddbmm_(ds, key[:, keys])
                dk[kv, keys] += ds.mT @ query
            dq[heads, rows] = (gathered * scale).view(heads.stop - heads.start, -1, q.shape[-1]).to(q.dtype)
    return dq, dk.to(k.dtype), dv.to(v.dtype)


def _head_groups(plan: Plan) -> Iterator[tuple[slice, slice, Segments]]:
    """Query heads, KV heads and mask of what can be computed together."""
    masks = plan.prepared.masks
    each = plan.shape.q_heads // len(masks), plan.shape.kv_heads // len(masks)
    for i, segments in enumerate(masks):
        heads, kv = (slice(i * n, i * n + n) for n in each)
        yield heads, kv, segments


def _tiles(segments: Segments, device: torch.device) -> Iterator[tuple[slice, Iterator[_Chunk]]]:
    for row_begin, row_end, segment_begin, segment_end, _ in segments.tiles.tolist():
        fields = segments.segments[segment_begin:segment_end].tolist()
        yield slice(row_begin, row_end), _chunks(segments, fields, row_end - row_begin, device)


def _chunks(segments: Segments, fields: list[list[int]], rows: int, device: torch.device) -> Iterator[_Chunk]:
    width, last = segments.tile_columns, segments.columns
    for first, steps, whole_begin, whole_end, offset, stride in fields:
        at = offset + np.arange(rows) * stride
        low = torch.from_numpy(segments.low[at]).to(device)[:, None]
        high = torch.from_numpy(segments.high[at]).to(device)[:, None]
        for step in range(0, steps, CHUNK_STEPS):
            stop = min(step + CHUNK_STEPS, steps)
            begin, end = first + step * width, min(first + stop * width, last)
            outside = None
            if not whole_begin <= step < stop <= whole_end:
                column = torch.arange(begin, end, device=device)
                outside = (column < low) | (column >= high)
            yield _Chunk(begin, end, outside)


def _grouped(x: torch.Tensor, group: int) -> torch.Tensor:
    """[heads, rows, n] -> [kv heads, group * rows, n]."""
    return x.reshape(x.shape[0] // group, -1, x.shape[-1])


def _scores(query: torch.Tensor, key: torch.Tensor, chunk: _Chunk, group: int) -> torch.Tensor:
    scores = query @ key[:, chunk.begin : chunk.end].mT
    if chunk.outside is not None:
        kv_heads, _, columns = scores.shape
        scores.view(kv_heads, group, -1, columns).masked_fill_(chunk.outside, -torch.inf)
    return scores
