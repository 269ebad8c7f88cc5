"""Ulysses: an all-to-all turns shards of tokens into shards of heads, and each rank sees the whole sequence.

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
