"""Does a block-sparse kernel skip what its map leaves out? Its time must fall with density.

One that ignores the map is wrong by its results. One that computes every block and masks it is right, but no
block-sparse kernel: seen beside its own denser maps, its time stands still.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from longca.flops import attention_flops
from longca.measure.record import MEASURED, Record

# Only maps of a quarter of the densest one's cells tell: laid over a kernel's own tiles, others fill most of those.
_FEWER_CELLS = 4
MOST_TIME = 0.9
"""Share of the densest map's time that a map of a quarter of its cells, or fewer, may take."""
# Below, launching and preparing weigh as much as computing (a tenth of a millisecond on a large GPU).
_TELLING_FLOPS = 1e11


def refuse_unskipped(records: Sequence[Record]) -> list[Record]:
    """The records of a block-sparse series, `fallback` where the sparsest map takes about the densest one's time."""
    groups: dict[tuple[Any, ...], list[Record]] = {}
    for record in records:
        if record.status == "ok":
            groups.setdefault(_but_density(record), []).append(record)
    reasons = {key: _reason(group) for key, group in groups.items()}
    densest = {key: max(record.area for record in group) for key, group in groups.items()}
    return [
        _fallback(record, reason)
        if (reason := reasons.get(_but_density(record))) and record.area < densest[_but_density(record)]
        else record
        for record in records
    ]


def _but_density(record: Record) -> tuple[Any, ...]:
    return record.pattern, record.seqlen, record.block, record.sample, record.pass_


def _reason(group: Iterable[Record]) -> str | None:
    """Why a kernel's records over densities, all ok, are no block-sparse attention; None where they are."""
    in_order = sorted(group, key=lambda record: record.area)
    sparse, dense = in_order[0], in_order[-1]
    flops = attention_flops(dense.area, dense.q_heads, dense.head_dim, dense.pass_)
    if dense.area < _FEWER_CELLS * sparse.area or flops < _TELLING_FLOPS:
        return None
    assert sparse.latency_ms and dense.latency_ms
    share = sparse.latency_ms.p50 / dense.latency_ms.p50
    if share <= MOST_TIME:
        return None
    low, high = (f"density {record.density:.3g}" for record in (sparse, dense))
    return f"does not skip blocks: {low} takes {share:.2f} of the time of {high}"


def _fallback(record: Record, reason: str) -> Record:
    nothing = dict.fromkeys((*MEASURED, "relative_error"))
    return Record.model_validate(
        record.model_dump() | nothing | {"status": "fallback", "reason": reason, "flags": []}
    )
