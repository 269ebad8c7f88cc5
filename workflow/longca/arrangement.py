"""How a case of context parallelism is spread over ranks, and which arrangements a grid asks for."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from longca.parallel.registry import SINGLE
from longca.parallel.topology import Topology, default_windows, parse_topology, really
from longca.study.context_parallel import ContextParallelGrid


@dataclass(frozen=True)
class Arrangement:
    """One mechanism on one topology. head_chunks: see parallel.Mechanism."""

    mechanism: str
    topology: Topology
    sharding: str
    head_chunks: int = 1

    @property
    def world_size(self) -> int:
        """Ranks in all."""
        return self.topology.world_size

    @property
    def really(self) -> str:
        """What the mechanism is on this topology: itself, or the simpler one it degenerates to."""
        return really(self.mechanism, self.topology)

    def columns(self) -> dict[str, Any]:
        """The columns of a record that say it."""
        return {
            "mechanism": self.mechanism,
            "world_size": self.world_size,
            "topology": asdict(self.topology),
            "sharding": self.sharding,
            "head_chunks": self.head_chunks,
        }


def mechanisms_of(grid: ContextParallelGrid, world_size: int) -> tuple[str, ...]:
    """The mechanisms of a grid on so many ranks: on one there is nothing to choose."""
    return grid.mechanisms if world_size > 1 else (SINGLE,)


def arrangements(
    grid: ContextParallelGrid, mechanism: str, pattern: str, world_size: int
) -> Iterator[Arrangement]:
    """Every arrangement of a grid for one mechanism, pattern and number of ranks, each once."""
    for topology in _topologies(grid, mechanism, world_size):
        # One shard leaves nothing to deal, one rank's heads nothing to exchange.
        several = grid.pattern_shardings.get(pattern, grid.shardings)
        for sharding in several if topology.ring > 1 else ("contiguous",):
            for chunks in grid.head_chunks if topology.ulysses > 1 else (1,):
                yield Arrangement(mechanism, topology, sharding, chunks)


def topology_on(mechanism: str, world_size: int, ulysses: int, placement: str = "ulysses") -> Topology:
    """A mechanism on so many ranks: usp and loongtrain with heads over `ulysses` of them, which divide them.

    Others have one topology, whatever `ulysses` and `placement` are.
    """
    if mechanism in (SINGLE, "ulysses"):
        return Topology(ulysses=world_size)
    if mechanism in ("ring_p2p", "ring_allgather"):
        return Topology(ring=world_size)
    ring = world_size // ulysses
    return Topology(ulysses, ring, default_windows(ring) if mechanism == "loongtrain" else 1, placement)


def _topologies(grid: ContextParallelGrid, mechanism: str, world_size: int) -> list[Topology]:
    asked = [parse_topology(text, mechanism, grid.placement) for text in _texts(grid, mechanism)]
    fitting = [topology for topology in asked if topology.world_size == world_size]
    if fitting:
        return fitting
    # As the paper: heads over a node, the sequence over nodes.
    node = max(n for n in range(1, min(grid.gpus_per_node, world_size) + 1) if world_size % n == 0)
    return [topology_on(mechanism, world_size, node, grid.placement)]


def _texts(grid: ContextParallelGrid, mechanism: str) -> tuple[str, ...]:
    return next((texts for name, texts in grid.topologies.items() if name == mechanism), ())
