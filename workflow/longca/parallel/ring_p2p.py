"""Ring attention: KV goes round the ring, each send under the attention of the step before.

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
