"""Which cases run on how many ranks: everything at 2 and 4, every two of their axes at 1, 3 and 8."""

from itertools import product

from parallel_cases import Case

from longca.masks.patterns import PATTERNS
from longca.parallel.sharding import SHARDINGS
from longca.parallel.topology import Topology

WINDOWED = Topology(ring=4, windows=2)


def _every(patterns, arrangements, **more):
    return [
        Case(mechanism, topology, sharding, pattern, **more)
        for pattern, (mechanism, topology), sharding in product(patterns, arrangements, SHARDINGS)
    ]


def _pairwise(arrangements, **more):
    """Every two of pattern, arrangement and sharding meet: shardings go round over the grid of the other two."""
    shardings = list(SHARDINGS)
    return [
        Case(mechanism, topology, shardings[(i + j) % len(shardings)], pattern, **more)
        for i, pattern in enumerate(PATTERNS)
        for j, (mechanism, topology) in enumerate(arrangements)
    ]


def _plain(size, usp, loongtrain):
    """The five mechanisms on `size` ranks."""
    return [
        ("ulysses", Topology(ulysses=size)),
        ("ring_p2p", Topology(ring=size)),
        ("ring_allgather", Topology(ring=size)),
        ("usp", usp),
        ("loongtrain", loongtrain),
    ]


def _volume_cases(size, arrangements):
    """Lengths that divide, so that each rank sends what the formula says."""
    return [
        Case(mechanism, topology, sharding, "causal", heads=(8, 2), seqlen=16 * size)
        for mechanism, topology in arrangements
        for sharding in ("contiguous", "zigzag")
    ]


TWO = _plain(2, Topology(2, 1), Topology(1, 2, 2))
FOUR = _plain(4, Topology(2, 2), WINDOWED)
EIGHT = _plain(8, Topology(2, 4), Topology(2, 4, 2))
FURTHER_FOUR = [
    ("usp", Topology(2, 2, placement="ring")),
    ("usp", Topology(4, 1)),
    ("usp", Topology(1, 4)),
    ("loongtrain", Topology(2, 2, 2, "ring")),
    ("loongtrain", Topology(1, 4, 4)),
    ("loongtrain", Topology(1, 4, 1)),
    ("loongtrain", Topology(4, 1)),
]
FURTHER_EIGHT = [
    ("loongtrain", Topology(1, 8, 2)),
    ("loongtrain", Topology(1, 8, 4)),
    ("loongtrain", Topology(2, 4, 2, "ring")),
    ("usp", Topology(4, 2, placement="ring")),
]
SOME = ("causal_document", "gaps")

CASES = {
    1: _pairwise(_plain(1, Topology(), Topology())),
    2: _every((*PATTERNS, "gaps"), TWO)
    + [
        Case("usp", Topology(1, 2), "zigzag", "causal"),
        Case("loongtrain", Topology(2, 1), "zigzag", "causal"),
    ]
    # 28:7 on two ranks: each KV head repeated; and chunks of heads under each other's all-to-all.
    + [Case("ulysses", Topology(2), "contiguous", "causal", heads=(28, 7), seqlen=33)]
    + [
        Case("ulysses", Topology(2), "contiguous", "causal", heads=(8, kv), head_chunks=chunks)
        for kv, chunks in ((8, 4), (8, 2), (4, 2), (2, 1))
    ]
    # Fewer tokens than ranks, or chunks than 2R: ranks without work, or without tokens.
    + [
        Case(mechanism, topology, sharding, "causal", seqlen=seqlen)
        for mechanism, topology in TWO
        for sharding in SHARDINGS
        for seqlen in (1, 3)
    ]
    + _volume_cases(2, TWO),
    3: _pairwise(_plain(3, Topology(3, 1), Topology(1, 3, 3)), heads=(6, 2)),
    4: _every((*PATTERNS, "gaps"), FOUR)
    + _every(SOME, FURTHER_FOUR)
    + [
        Case("usp", Topology(2, 2), "document_zigzag", "causal_document", heads=(8, 4), head_chunks=2),
        Case("loongtrain", Topology(2, 2, 2), "balanced", "full", heads=(8, 4), head_chunks=2),
    ]
    + [
        Case(mechanism, topology, sharding, "full", seqlen=3)
        for mechanism, topology in FOUR
        for sharding in SHARDINGS
    ]
    + _volume_cases(4, FOUR + FURTHER_FOUR),
    8: _pairwise(EIGHT, heads=(8, 2))
    + _every(("causal_document",), FURTHER_EIGHT, heads=(8, 2))
    + _volume_cases(8, EIGHT + FURTHER_EIGHT),
    # 64:8 on 16 ranks: two copies of each KV head.
    16: [Case("ulysses", Topology(16), "contiguous", "causal", heads=(64, 8), seqlen=33)],
}
