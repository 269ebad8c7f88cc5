"""Unified sequence parallelism: Ulysses inside a ring shard, ring attention across the shards.

U ranks share a ring shard and exchange heads as in ulysses; between the R shards KV goes round as in ring_p2p, with the
heads that the exchange left. Four ranks as U = 2, R = 2:

                       shard 0      shard 1
    heads, first half  rank 0   ⇄   rank 2     ring of KV
                         ⇅            ⇅        exchange of heads
    heads, other half  rank 1   ⇄   rank 3     ring of KV

Source: "USP: A Unified Sequence Parallelism Approach" (arXiv 2405.07719).
"""

from longca.parallel.form import Form
from longca.parallel.ring_p2p import sequence

FORM = Form(
    "all-to-all over U inside a ring shard, ring over R", sequence, takes_ulysses=True, takes_ring=True
)
