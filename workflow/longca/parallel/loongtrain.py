"""Two-dimensional attention: Ulysses inside a ring shard, and a double ring across the shards.

As usp, with the ring's R ranks in N windows of M = R / N. A ring across the windows hands KV to the next window; each
of its steps is a whole turn of the ring inside the window, and its send starts before that turn. Whose KV is in hand,
in two windows of two:

                       turn 0      turn 1
    window 0  rank 0   KV0   KV1   KV2   KV3
              rank 1   KV1   KV0   KV3   KV2
    window 1  rank 2   KV2   KV3   KV0   KV1
              rank 3   KV3   KV2   KV1   KV0

R - 1 sends in all, as of a single ring, but N(M - 1) of them stay inside a window. A ring of rings is the same few
lines as a ring, so either ring may have one rank. N is by default the largest divisor of R not above R / N
(`topology.default_windows`).

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
