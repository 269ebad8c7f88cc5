"""How W ranks are arranged: U (Ulysses, heads) x R (ring, sequence), the ring in N windows."""

import re
from dataclasses import dataclass
from math import isqrt

from longca.errors import LongcaError
from longca.names import unknown_name

PLACEMENTS = ("ulysses", "ring")


@dataclass(frozen=True)
class Topology:
    """Sizes of the groups of one mechanism.

    ulysses: ranks U that share a ring shard and divide its heads. ring: shards R of the sequence. windows: N
    equal parts of the ring (loongtrain's double ring). placement: the group, ulysses or ring, whose ranks are
    neighbours in rank order, and so stand inside a node.

    Raises:
        LongcaError: for sizes below 1, windows that do not divide the ring, an unknown placement.
    """

    ulysses: int = 1
    ring: int = 1
    windows: int = 1
    placement: str = "ulysses"

    def __post_init__(self) -> None:
        for name in ("ulysses", "ring", "windows"):
            if getattr(self, name) < 1:
                raise LongcaError(f"topology {name}={getattr(self, name)}: must be at least 1")
        if self.ring % self.windows:
            raise LongcaError(f"topology windows={self.windows}: must divide ring={self.ring}")
        if self.placement not in PLACEMENTS:
            raise LongcaError(f"topology placement: {unknown_name(self.placement, PLACEMENTS, 'placement')}")

    @property
    def world_size(self) -> int:
        """Ranks in all: W = U * R."""
        return self.ulysses * self.ring

    @property
    def window_size(self) -> int:
        """Ring ranks in a window: M = R / N."""
        return self.ring // self.windows

    def coordinates(self, rank: int) -> tuple[int, int]:
        """(place in its Ulysses group, place in its ring) of a rank."""
        if self.placement == "ulysses":
            return rank % self.ulysses, rank // self.ulysses
        return rank // self.ring, rank % self.ring

    def rank(self, ulysses: int, ring: int) -> int:
        """The inverse of `coordinates`."""
        return ring * self.ulysses + ulysses if self.placement == "ulysses" else ulysses * self.ring + ring

    @property
    def double_ring(self) -> bool:
        """Whether windows make two rings of it: there are several, of several ranks each."""
        return self.windows > 1 and self.window_size > 1


TOPOLOGY_TEXT = r"^[1-9][0-9]*x[1-9][0-9]*(x[1-9][0-9]*)?$"


def parse_topology(text: str, mechanism: str, placement: str = "ulysses") -> Topology:
    """The topology in `2x4` (U x R) or `2x4x2` (U x R, the ring in N windows) for usp or loongtrain.

    Without N loongtrain takes `default_windows`, usp one window. Raises LongcaError for a text that is none, and
    as Topology does.
    """
    if not re.fullmatch(TOPOLOGY_TEXT, text):
        raise LongcaError(f"topology {text!r}: is none; right: U x R, or U x R x windows, as 2x4 or 2x4x2")
    ulysses, ring, *windows = map(int, text.split("x"))
    chosen = windows[0] if windows else default_windows(ring) if mechanism == "loongtrain" else 1
    if mechanism == "usp" and chosen != 1:
        raise LongcaError(f"topology {text!r}: usp has no windows; right: {ulysses}x{ring}")
    return Topology(ulysses, ring, chosen, placement)


def default_windows(ring: int) -> int:
    """The largest divisor d of the ring with d <= ring / d, as the paper chooses N."""
    return next(d for d in range(isqrt(ring), 0, -1) if ring % d == 0)


def really(mechanism: str, topology: Topology) -> str:
    """What a mechanism is on this topology: its own name, or that of the simpler one it degenerates to.

    `single` where nothing is left to communicate. A result is labelled with this name.
    """
    if topology.world_size == 1:
        return "single"
    if mechanism not in ("usp", "loongtrain") or (mechanism == "loongtrain" and topology.double_ring):
        return mechanism
    if topology.ring == 1:
        return "ulysses"
    return "ring_p2p" if topology.ulysses == 1 else "usp"
