"""All-gather of KV, attention to all keys at once, reduce-scatter of dKV.

It goes by chunks of KV heads, K and V of a chunk in one launch: the next chunk's gather, and the last one's
reduce-scatter, run under the attention of this one, and two buffers hold a quarter of the gathered heads each. A
forward, in time, of four chunks:

    link     gather 0   gather 1   gather 2   gather 3
    kernel              heads 0    heads 1    heads 2    heads 3

dK and dV are summed in fp32.

Source: context parallelism of Llama 3 (arXiv 2407.21783).
"""

from longca.parallel.form import Form
from longca.parallel.gather_attention import GatherAttention
from longca.parallel.groups import Groups
from longca.parallel.local import SequencePart, Setting
from longca.parallel.ring_attention import RingAttention


def sequence(groups: Groups, index: int, setting: Setting) -> SequencePart:
    """One gather over all shards; the local kernel alone where there is one."""
    if groups.ring.size == 1:
        return RingAttention([], index, setting)
    return GatherAttention(groups.ring, setting)


FORM = Form("KV is gathered a few heads at a time; dKV is summed and scattered", sequence, takes_ring=True)
