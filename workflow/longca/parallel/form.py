"""What a mechanism declares: the topologies it is for, and how it brings keys to queries along the ring."""

from collections.abc import Callable
from dataclasses import dataclass

from longca.parallel.groups import Groups
from longca.parallel.local import SequencePart, Setting
from longca.parallel.topology import Topology


@dataclass(frozen=True)
class Form:
    """One mechanism. sequence(groups, index, setting): its part along the ring, for the ring shard `index`.

    Heads are divided over the Ulysses group around it wherever the topology has one; `takes_ulysses`,
    `takes_ring` and `takes_windows` say which of the three sizes may be above 1.
    """

    summary: str
    sequence: Callable[[Groups, int, Setting], SequencePart]
    takes_ulysses: bool = False
    takes_ring: bool = False
    takes_windows: bool = False

    def reason_against(self, topology: Topology) -> str | None:
        """Why the mechanism is not for this topology, or None."""
        for name, takes in (
            ("ulysses", self.takes_ulysses),
            ("ring", self.takes_ring),
            ("windows", self.takes_windows),
        ):
            if getattr(topology, name) > 1 and not takes:
                return f"{name}={getattr(topology, name)}: must be 1"
        return None
