"""What the cost model is fitted to: the measured cases of context parallel, a point each."""

from collections.abc import Sequence
from dataclasses import dataclass

from longca.flops import ELEMENT_BYTES, attention_flops
from longca.parallel.clusters import Cluster
from longca.parallel.cost_model import Cost, KernelCost, Workload, calls, predict
from longca.parallel.registry import SINGLE
from longca.parallel.topology import Topology
from longca.reporting.long import Row
from longca.reporting.mechanisms import topology_of


@dataclass(frozen=True)
class Point:
    """A measured pass: seconds of the whole, of its computation and of its communication, each of the slowest rank."""

    mechanism: str
    topology: Topology
    head_chunks: int
    kernel: str
    pattern: str
    workload: Workload
    whole_s: float
    computation_s: float
    communication_s: float

    @property
    def flops_a_rank(self) -> float:
        """Of the rank with the most."""
        load = self.workload
        flops = attention_flops(load.area, load.q_heads, load.head_dim, load.pass_)
        return flops * load.imbalance / self.topology.world_size

    @property
    def calls(self) -> int:
        """Calls of the local kernel, as the model counts them."""
        return calls(self.mechanism, self.topology, self.head_chunks, self.workload.kv_heads)

    def predicted(self, kernel: KernelCost, cluster: Cluster) -> Cost:
        """What the model says of this point."""
        arrangement = (self.mechanism, self.topology, self.workload)
        return predict(*arrangement, kernel, cluster, self.head_chunks)


def measured_points(rows: Sequence[Row]) -> list[Point]:
    """The ok cases of a long context-parallel table, degenerate topologies left out: they are another mechanism's."""
    return [_point(row) for row in rows if row["status"] == "ok" and "degenerate" not in (row["flags"] or ())]


def _point(row: Row) -> Point:
    workload = Workload(
        area=row["area"],
        seqlen=row["seqlen"],
        q_heads=row["q_heads"],
        kv_heads=row["kv_heads"],
        head_dim=row["head_dim"],
        element_bytes=ELEMENT_BYTES[row["dtype"]],
        pass_=row["pass"],
        imbalance=row["imbalance"],
    )
    return Point(
        mechanism=row["mechanism"],
        topology=topology_of(row),
        head_chunks=row["head_chunks"],
        kernel=row["kernel"],
        pattern=row["pattern"],
        workload=workload,
        whole_s=row["latency_ms_p50"] / 1e3,
        computation_s=row["computation_ms"] / 1e3,
        communication_s=row["communication_ms"] / 1e3,
    )


def on_ranks(points: Sequence[Point]) -> list[Point]:
    """Those that communicate."""
    return [point for point in points if point.mechanism != SINGLE]
