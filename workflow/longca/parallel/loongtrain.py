"""Two-dimensional attention: Ulysses inside a ring shard, and a double ring across the shards.

The ring's N windows of M ranks: KV goes round its window while the KV for the next turn is already on its way
across the windows. R - 1 sends in all, as a single ring, but of N(M - 1) inside windows.
Source: "LoongTrain" (arXiv 2406.18485).
"""

from longca.parallel.form import Form
from longca.parallel.groups import Groups
from longca.parallel.local import SequencePart, Setting
from longca.parallel.ring import Ring
from longca.parallel.ring_attention import RingAttention


def sequence(groups: Groups, index: int, setting: Setting) -> SequencePart:
    """A ring across the windows around a ring inside the window."""
    across = Ring(groups.across, stride=groups.topology.window_size)
    return RingAttention([across, Ring(groups.window)], index, setting)


FORM = Form(
    "all-to-all over U inside a ring shard, double ring in N windows over R",
    sequence,
    takes_ulysses=True,
    takes_ring=True,
    takes_windows=True,
)
