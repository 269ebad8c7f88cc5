"""The cost model beside what others published of 8 to 64 GPUs: nothing of it is fitted to them."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from longca.arrangement import topology_on
from longca.flops import ELEMENT_BYTES
from longca.parallel.clusters import find_cluster
from longca.parallel.cost_model import KernelCost, Workload, predict
from longca.parallel.registry import MECHANISMS
from longca.parallel.topology import Topology
from longca.reporting.anchors import Anchor, read_anchors
from longca.reporting.scale.areas import Areas
from longca.reporting.scale.projection import BALANCED, evenly_dealt
from longca.study.masks import DEFAULT_MASKS

CLUSTER = "h100_400g"
# The kernel their mechanisms stand on, at the longest sequence they print of it alone.
KERNEL = "fa3"
_NODE = 8
DATASET = "prolong512k_long"


@dataclass(frozen=True)
class Beside:
    """A published throughput in TFLOP/s a GPU, and the model's; topology: the paper's, U = min(W, 8)."""

    anchor: Anchor
    topology: Topology
    modelled: float

    @property
    def ratio(self) -> float:
        """Modelled over published."""
        return self.modelled / self.anchor.tflops_per_gpu


@cache
def beside_published() -> tuple[Beside, ...]:
    """Every published throughput of a mechanism that is here, in their order."""
    return tuple(_beside())


def _beside() -> Iterator[Beside]:
    cluster, areas = find_cluster(CLUSTER), Areas(DEFAULT_MASKS.draw)
    for anchor in read_anchors():
        rate = _rate(anchor)
        if anchor.family != "context_parallel" or anchor.method not in MECHANISMS or rate is None:
            continue
        topology = topology_on(anchor.method, anchor.gpus, min(anchor.gpus, _NODE))
        load = Workload(
            areas.of(anchor.pattern, DATASET, anchor.seqlen),
            anchor.seqlen,
            *anchor.heads,
            anchor.head_dim,
            ELEMENT_BYTES[anchor.dtype],
            anchor.pass_,
            1.0 if evenly_dealt(anchor.pattern) else BALANCED,
        )
        cost = predict(anchor.method, topology, load, KernelCost(rate), cluster)
        share = cost.computation_s * rate / load.imbalance
        yield Beside(anchor, topology, share / cost.total_s / 1e12)


def _rate(anchor: Anchor) -> float | None:
    """FLOPs a second of the kernel alone on the pattern and pass, as they print it."""
    alone = [
        one
        for one in read_anchors()
        if (one.source, one.family, one.method, one.pattern, one.pass_)
        == (anchor.source, "dense", KERNEL, anchor.pattern, anchor.pass_)
    ]
    return max(alone, key=lambda one: one.seqlen).tflops_per_gpu * 1e12 if alone else None
