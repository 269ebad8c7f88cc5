"""Rows of context parallel as tables and figures compare them: mechanisms side by side, where others have kernels."""

from collections.abc import Callable, Sequence

from longca.masks.patterns import PATTERNS
from longca.parallel.registry import SINGLE
from longca.parallel.topology import Topology, really
from longca.reporting.cells import Cell
from longca.reporting.long import Row

FAMILY = "context_parallel"


def as_mechanisms(rows: Sequence[Row]) -> list[Row]:
    """Rows with the arrangement in place of the kernel, in words as short as their differences allow; the kernel that
    computes on a rank is `local_kernel` then.

    Patterns without documents come under the dataset of those that have, where that is one: they are compared.
    Rows of other families stay as they are.
    """
    own = [row for row in rows if row["family"] == FAMILY]
    several = {
        name: _differs(name, own) for name in ("kernel", "sharding", "head_chunks", "topology_placement")
    }
    datasets = {row["dataset"] for row in own if PATTERNS[row["pattern"]].takes_documents}
    dataset = {"dataset": datasets.pop()} if len(datasets) == 1 else {}
    return [
        row | dataset | {"kernel": label(row, several), "local_kernel": row["kernel"]}
        if row["family"] == FAMILY
        else row
        for row in rows
    ]


def local_kernel(cell: Cell) -> str:
    """What computes on a rank, of a cell of `as_mechanisms`."""
    return str(cell.rows[0]["local_kernel"])


def is_alone(cell: Cell) -> bool:
    """Whether a cell is of one rank without others, whatever it is called beside them."""
    return bool(cell.rows[0]["mechanism"] == SINGLE)


def label(row: Row, several: dict[str, bool]) -> str:
    """A mechanism with what tells it from others: topology, and where there are several sharding, chunks, kernel."""
    mechanism, topology = row["mechanism"], topology_of(row)
    words = [mechanism]
    if mechanism in ("usp", "loongtrain"):
        windows = f"x{topology.windows}" if topology.windows > 1 else ""
        words.append(f"{topology.ulysses}x{topology.ring}{windows}")
    words += [f"{row['sharding']}"] if several["sharding"] and topology.ring > 1 else []
    words += [f"{row['head_chunks']} chunks"] if several["head_chunks"] and row["head_chunks"] > 1 else []
    words += [f"{topology.placement} inside"] if several["topology_placement"] and topology.ring > 1 else []
    words += [f"over {row['kernel']}"] if several["kernel"] else []
    simpler = really(mechanism, topology)
    return " ".join(words) + (f" = {simpler}" if simpler != mechanism else "")


def topology_of(row: Row) -> Topology:
    """How the ranks of a row are arranged."""
    sizes = (row[f"topology_{name}"] for name in ("ulysses", "ring", "windows", "placement"))
    return Topology(*sizes)


def efficiency(cell: Cell) -> float | None:
    """Computation alone over the whole, each of the slowest rank; None unless ok."""
    return _ratio(cell, "computation_ms", "latency_ms_p50")


def _ratio(cell: Cell, above: str, below: str) -> float | None:
    if not cell.ok:
        return None
    return sum(row[above] for row in cell.rows) / sum(row[below] for row in cell.rows)


def most(column: str, unit: float = 1.0) -> Callable[[Cell], float | None]:
    """The largest value of a column over a cell's samples, divided by `unit`; None unless ok."""
    return lambda cell: max(row[column] for row in cell.rows) / unit if cell.ok else None


def _differs(name: str, rows: Sequence[Row]) -> bool:
    """Whether a column tells rows of one pattern apart; that patterns differ in it is in their own rows."""
    seen: dict[str, set[object]] = {}
    for row in rows:
        if _matters(name, row):
            seen.setdefault(row["pattern"], set()).add(row[name])
    return any(len(values) > 1 for values in seen.values())


def _matters(name: str, row: Row) -> bool:
    """Whether a column says something of a row: one shard leaves nothing to deal, one rank's heads nothing to chunk."""
    if name == "sharding" or name == "topology_placement":
        return bool(row["topology_ring"] > 1)
    return name != "head_chunks" or bool(row["topology_ulysses"] > 1)
