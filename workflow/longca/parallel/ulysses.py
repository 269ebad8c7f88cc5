"""Ulysses: an all-to-all turns shards of tokens into shards of heads, and each rank sees the whole sequence.

One call of the local kernel, then an all-to-all takes the output back. On two ranks, of four heads:

            holds                  computes                  holds
    rank 0  tokens 0, heads 0-3 →  tokens 0-1, heads 0-1  →  tokens 0, heads 0-3
    rank 1  tokens 1, heads 0-3 →  tokens 0-1, heads 2-3  →  tokens 1, heads 0-3

A peer gets one message a tensor: the heads of a rank's own tokens are one block as they stand, the tokens of its own
heads are packed and unpacked; nothing is permuted or padded besides. Where U does not divide the KV heads, each is sent
to as many ranks as need it, as if there were lcm(kv_heads, U), and its gradients are summed in fp32 (64:8 on U = 16,
28:7 on U = 2). Where U does not divide the query heads the mechanism is unsupported and says so. With `head_chunks`
above 1 the exchange of one chunk of heads runs under the attention of the chunk before.

Source: "DeepSpeed Ulysses" (arXiv 2309.14509); head replication as in arXiv 2510.17896.
"""

from longca.parallel.form import Form
from longca.parallel.groups import Groups
from longca.parallel.local import SequencePart, Setting
from longca.parallel.ring_attention import RingAttention


def sequence(groups: Groups, index: int, setting: Setting) -> SequencePart:
    """The local kernel on the whole sequence: a ring of nobody."""
    return RingAttention([], index, setting)


FORM = Form("all-to-all of heads for tokens; then one call of the local kernel", sequence, takes_ulysses=True)
