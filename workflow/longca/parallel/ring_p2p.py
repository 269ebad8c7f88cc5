"""Ring attention: KV goes round the ring, each send under the attention of the step before.

A send starts, the attention to the KV in hand runs, the send is waited for. Whose KV is in hand, on three ranks:

    step      0     1     2
    rank 0    KV0   KV2   KV1
    rank 1    KV1   KV0   KV2
    rank 2    KV2   KV1   KV0

Owners whose keys the mask does not want are passed on without a call of the kernel. In a backward dKV follows its KV in
fp32: a rank adds its part and sends the sum on under the next step; the owner's own part stays and is added last. A
ring keeps its own KV and two receive buffers (a backward two more, for dKV) whatever its size.

Source: "Ring Attention with Blockwise Transformers" (arXiv 2310.01889).
"""

from longca.parallel.form import Form
from longca.parallel.groups import Groups
from longca.parallel.local import SequencePart, Setting
from longca.parallel.ring import Ring
from longca.parallel.ring_attention import RingAttention


def sequence(groups: Groups, index: int, setting: Setting) -> SequencePart:
    """One ring of all shards."""
    return RingAttention([Ring(groups.ring)], index, setting)


FORM = Form("KV passes round a ring, under the attention; dKV follows", sequence, takes_ring=True)
