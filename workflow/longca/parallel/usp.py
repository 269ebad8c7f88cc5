"""Unified sequence parallelism: Ulysses inside a ring shard, ring attention across the shards.

Source: "USP: A Unified Sequence Parallelism Approach" (arXiv 2405.07719).
"""

from longca.parallel.form import Form
from longca.parallel.ring_p2p import sequence

FORM = Form(
    "all-to-all over U inside a ring shard, ring over R", sequence, takes_ulysses=True, takes_ring=True
)
