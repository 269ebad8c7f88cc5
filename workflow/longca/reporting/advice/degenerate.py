"""Cells of a mechanism on ranks where it is a simpler one: not ranked beside what they are."""

from collections.abc import Hashable, Sequence

from longca.parallel.topology import really
from longca.reporting.cells import Cell
from longca.reporting.mechanisms import topology_of


def without_doubles(cells: Sequence[Cell]) -> list[Cell]:
    """Cells of kernels, or of mechanisms, less those that degenerate to one that is here, ok in all their passes.

    A usp of 1x2 goes where ring_p2p over the same kernel, dealt alike, is ranked; else it stays as what there is.
    """
    ranked = {_is(cell) for cell in cells if cell.ok and not _degenerate(cell)}
    doubles = [cell for cell in cells if _degenerate(cell)]
    alone = {cell.kernel for cell in doubles if _is(cell) not in ranked}
    gone = {cell.kernel for cell in doubles} - alone
    return [cell for cell in cells if cell.kernel not in gone]


def _degenerate(cell: Cell) -> bool:
    row = cell.rows[0]
    return bool(row.get("mechanism")) and really(row["mechanism"], topology_of(row)) != row["mechanism"]


def _is(cell: Cell) -> tuple[Hashable, ...]:
    """What a cell's mechanism is in truth, over which kernel, where, and what else it is compared in."""
    row = cell.rows[0]
    if not row.get("mechanism"):
        return cell.place, cell.kernel
    topology = topology_of(row)
    sharding = row["sharding"] if topology.ring > 1 else None
    chunks = row["head_chunks"] if topology.ulysses > 1 else None
    own = (really(row["mechanism"], topology), topology.ulysses, topology.ring)
    return cell.place, own, row["local_kernel"], sharding, chunks
