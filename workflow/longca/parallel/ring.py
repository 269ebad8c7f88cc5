"""Rings, and rings of rings: the KV of every rank passes by, and the gradients of KV are carried to their owner.

A ring keeps the KV it starts with and two receive buffers, whatever its size; a backward two more for the
gradients it carries. Each send starts before the computation it goes under and is waited for after it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from longca.parallel.communication import Link
from longca.parallel.local import Pair
from longca.parallel.merge import exact_dtype


@dataclass(frozen=True)
class Ring:
    """One ring: where this rank stands in it, and how far its neighbours lie apart in the owners' numbers."""

    link: Link
    stride: int = 1

    def owner(self, origin: int, step: int) -> int:
        """Whose KV is in hand at `step`, when that of owner `origin` is at step 0."""
        position = origin // self.stride % self.link.size
        return origin + ((position - step) % self.link.size - position) * self.stride


class _Buffers:
    """Two buffers in turn, each for KV of at most `rows` rows."""

    def __init__(self, like: torch.Tensor, dtype: torch.dtype, rows: int) -> None:
        self._heads, self._head_dim = like.shape[0], like.shape[2]
        self._flat = [like.new_empty(2 * self._heads * rows * self._head_dim, dtype=dtype) for _ in range(2)]

    def next(self, rows: int) -> Pair:
        """Contiguous k and v, [heads, rows, D] each, in the buffer that was used longest ago."""
        self._flat.reverse()
        size = self._heads * rows * self._head_dim
        k, v = (self._flat[0][i * size : (i + 1) * size] for i in range(2))
        shape = (self._heads, rows, self._head_dim)
        return k.view(shape), v.view(shape)


def circulate(
    rings: Sequence[Ring], rows: Sequence[int], origin: int, kv: Pair, visit: Callable[[int, Pair], None]
) -> None:
    """Calls visit(owner, (k, v)) once with the KV of every owner of the rings, the outermost ring first.

    kv: what `origin` owns, the first to be visited; rows: of each owner's KV. Each step of a ring is a whole
    turn of the rings inside it.
    """
    if not rings:
        visit(origin, kv)
        return
    ring, inner = rings[0], rings[1:]
    link, steps = ring.link, ring.link.size
    buffers = _Buffers(kv[0], kv[0].dtype, max(rows)) if steps > 1 else None
    for step in range(steps):
        owner = ring.owner(origin, step)
        moving = None
        if buffers and step + 1 < steps:
            arriving = buffers.next(rows[ring.owner(origin, step + 1)])
            moving = link.move(_onward(kv, link), _inward(arriving, link), "kv")
        circulate(inner, rows, owner, kv, visit)
        if moving:
            moving.wait()
            kv = arriving


def _nothing() -> None:
    """Goes on under the last send of an inner ring."""


def circulate_back(
    rings: Sequence[Ring],
    rows: Sequence[int],
    origin: int,
    kv: Pair,
    visit: Callable[[int, Pair], Pair | None],
    meanwhile: Callable[[], None] = _nothing,
) -> Pair | None:
    """`circulate` with gradients: visit returns this rank's part of dk and dv, or None where it has none.

    The last send goes under no visit; meanwhile() is called once it has started, and not where nothing is sent.

    Returns the sum over all ranks of the rings for `origin`, in exact precision where anything was added. The
    owner's part stays with the owner and is added last, so a ring of n sends dKV n - 1 times.
    """
    if not rings:
        return visit(origin, kv)
    ring, inner = rings[0], rings[1:]
    link, steps = ring.link, ring.link.size
    if steps == 1:
        return circulate_back(inner, rows, origin, kv, visit, meanwhile)
    exact = exact_dtype(kv[0].dtype)
    buffers, carriers = _Buffers(kv[0], kv[0].dtype, max(rows)), _Buffers(kv[0], exact, max(rows))
    own = carried = None
    for step in range(steps):
        owner = ring.owner(origin, step)
        sends: list[tuple[torch.Tensor, int]] = []
        receives: list[tuple[torch.Tensor, int]] = []
        if carried:  # from the second step on: ours goes on, the previous rank's comes for the owner in hand
            sends += _onward(carried, link)
            carried = carriers.next(rows[owner])
            receives += _inward(carried, link)
        gradients = link.move(sends, receives, "dkv")
        moving = None
        if step + 1 < steps:
            arriving = buffers.next(rows[ring.owner(origin, step + 1)])
            moving = link.move(_onward(kv, link), _inward(arriving, link), "kv")
        part = circulate_back(inner, rows, owner, kv, visit)
        gradients.wait()
        if step == 0:
            own = part
        elif carried:
            _add(carried, part)
        else:
            carried = _fill(carriers.next(rows[owner]), part)
        if moving:
            moving.wait()
            kv = arriving
    assert carried
    total = carriers.next(rows[origin])
    arriving_last = link.move(_onward(carried, link), _inward(total, link), "dkv")
    meanwhile()
    arriving_last.wait()
    return _add(total, own)


def _onward(pair: Pair, link: Link) -> list[tuple[torch.Tensor, int]]:
    return [(tensor, (link.index + 1) % link.size) for tensor in pair]


def _inward(pair: Pair, link: Link) -> list[tuple[torch.Tensor, int]]:
    return [(tensor, (link.index - 1) % link.size) for tensor in pair]


def _add(total: Pair, part: Pair | None) -> Pair:
    if part:
        for sum_, addend in zip(total, part, strict=True):
            sum_.add_(addend)
    return total


def _fill(target: Pair, part: Pair | None) -> Pair:
    for index, tensor in enumerate(target):
        if part:
            tensor.copy_(part[index])
        else:
            tensor.zero_()
    return target
