"""What a pass over ranks costs: a measured kernel, an alpha-beta network, and how a mechanism lays one over the other.

A message costs a latency and its bytes over a bandwidth (alpha-beta), inside a node or between nodes; a call of the
local kernel costs its FLOPs over the rate that was measured, and a constant. The schedule is that of the code: ring
steps hide under attention, an all-to-all of one chunk of heads does not, a gather hides but for its first chunk.
"""

from dataclasses import dataclass
from math import lcm

from longca.flops import attention_flops
from longca.parallel.clusters import Cluster
from longca.parallel.topology import Topology

# As gather_attention has it, whose code identifies records, so that it cannot ask here.
_MOST_GATHER_CHUNKS = 4
_EXACT_BYTES = 4


@dataclass(frozen=True)
class Workload:
    """One pass: area in cells of the whole mask, tokens of the whole sequence, elements of `element_bytes`."""

    area: float
    seqlen: int
    q_heads: int
    kv_heads: int
    head_dim: int
    element_bytes: int
    pass_: str
    imbalance: float = 1.0


@dataclass(frozen=True)
class KernelCost:
    """A local kernel on a pattern and pass: FLOPs a second, seconds a call beside them."""

    flops_per_s: float
    call_s: float = 0.0


@dataclass(frozen=True)
class Cost:
    """Seconds of a pass: its computation alone, its communication alone, and both as the mechanism lays them."""

    computation_s: float
    communication_s: float
    total_s: float

    @property
    def exposed_s(self) -> float:
        """What of the communication no computation hides."""
        return self.total_s - self.computation_s

    @property
    def efficiency(self) -> float:
        """Computation over the whole."""
        return self.computation_s / self.total_s


def calls(mechanism: str, topology: Topology, head_chunks: int, kv_heads: int) -> int:
    """Calls of the local kernel in a pass over a mask that leaves no rank without work.

    One for each step of a ring and chunk of heads; of a gather, one for each of its chunks, as many as KV heads allow.
    """
    if mechanism == "ring_allgather":
        return next(n for n in range(_MOST_GATHER_CHUNKS, 0, -1) if kv_heads % n == 0)
    return topology.ring * head_chunks


def predict(
    mechanism: str,
    topology: Topology,
    workload: Workload,
    kernel: KernelCost,
    cluster: Cluster,
    head_chunks: int = 1,
) -> Cost:
    """The cost of a pass of a mechanism on a topology, of a cluster's ranks in order."""
    flops = attention_flops(workload.area, workload.q_heads, workload.head_dim, workload.pass_)
    share = flops * workload.imbalance / topology.world_size / kernel.flops_per_s
    times = calls(mechanism, topology, head_chunks, workload.kv_heads)
    computation = share + times * kernel.call_s
    if mechanism == "ring_allgather":
        return _gathered(topology, workload, cluster, computation, times)
    inward, outward = _exchanges(topology, workload, cluster)
    kv, gradients = _ring_bytes(topology, workload)
    sends = [_send(level, kv, gradients, topology, cluster) for level in _levels(mechanism, topology)]
    part, part_alone = _turn(sends, computation), sum(send.alone for send in sends)
    hidden = max(0.0, min((head_chunks - 1) * part / head_chunks, (inward + outward) * (1 - 1 / head_chunks)))
    exchange = inward + outward
    return Cost(computation, exchange + part_alone, part + exchange - hidden)


@dataclass(frozen=True)
class _Level:
    """One ring: its steps, and whether any of its hops leaves a node."""

    steps: int
    crosses: bool
    turns: int


@dataclass(frozen=True)
class _Sends:
    """Of one ring: its steps; seconds that go under each step's computation, are left at the end, and of all alone."""

    steps: int
    under_s: float
    last_s: float
    alone: float


def _levels(mechanism: str, topology: Topology) -> list[_Level]:
    if topology.ring == 1:
        return []
    if mechanism != "loongtrain" or not topology.double_ring:
        return [_Level(topology.ring, True, 1)]
    return [
        _Level(topology.windows, True, 1),
        _Level(topology.window_size, False, topology.windows),
    ]


def _send(level: _Level, kv: float, gradients: float, topology: Topology, cluster: Cluster) -> _Sends:
    """A hop's seconds: over the slowest link of the ring, since each step waits for all."""
    members = topology.ring if level.crosses else level.steps
    reach = members * (topology.ulysses if topology.placement == "ulysses" else 1)
    link = cluster.between if reach > cluster.gpus_per_node else cluster.inside
    forth, back = link.seconds(2, kv), link.seconds(2, gradients) if gradients else 0.0
    alone = level.turns * (level.steps - 1) * (forth + back)
    return _Sends(level.steps, forth + back, back, alone)


def _turn(sends: list[_Sends], computation: float) -> float:
    """Seconds of a turn of rings, the outermost first: a send goes under what each step computes."""
    if not sends:
        return computation
    ring = sends[0]
    step = _turn(sends[1:], computation / ring.steps)
    return (ring.steps - 1) * max(step, ring.under_s) + step + ring.last_s


def _ring_bytes(topology: Topology, workload: Workload) -> tuple[float, float]:
    """Bytes of KV that a rank passes on in one step, and of its gradients in a backward."""
    tokens = workload.seqlen / topology.world_size
    numbers = 2 * tokens * lcm(workload.kv_heads, topology.ulysses) * workload.head_dim
    gradients = numbers * _EXACT_BYTES if workload.pass_ == "backward" else 0.0
    return numbers * workload.element_bytes, gradients


def _exchanges(topology: Topology, workload: Workload, cluster: Cluster) -> tuple[float, float]:
    """Seconds of the all-to-all before attention and of that after it."""
    u = topology.ulysses
    if u == 1:
        return 0.0, 0.0
    each = (u - 1) / u * workload.seqlen / topology.world_size * workload.head_dim * workload.element_bytes
    kv_heads = lcm(workload.kv_heads, u)
    before, after = workload.q_heads + 2 * kv_heads, workload.q_heads
    if workload.pass_ == "backward":
        before, after = after, before
    return tuple(_exchange(topology, each * heads, cluster) for heads in (before, after))  # type: ignore[return-value]


def _exchange(topology: Topology, size: float, cluster: Cluster) -> float:
    """An all-to-all: the links inside and between nodes work at the same time."""
    peers = topology.ulysses - 1
    apart = 1 if topology.placement == "ulysses" else topology.ring
    near = min(topology.ulysses, max(1, cluster.gpus_per_node // apart)) - 1
    far = peers - near
    inside = cluster.inside.seconds(near, size * near / peers) if near else 0.0
    between = cluster.between.seconds(far, size * far / peers) if far else 0.0
    return max(inside, between)


def _gathered(
    topology: Topology, workload: Workload, cluster: Cluster, computation: float, chunks: int
) -> Cost:
    """Gathers of a few heads under the attention of the ones before; the first is exposed, and the last scatter."""
    kv, gradients = _ring_bytes(topology, workload)
    gather, scatter = (_collective(size, topology.ring, cluster) if size else 0.0 for size in (kv, gradients))
    step = max(computation, gather + scatter) / chunks
    total = gather / chunks + (chunks - 1) * step + computation / chunks + scatter / chunks
    return Cost(computation, gather + scatter, total)


def _collective(size: float, ranks: int, cluster: Cluster) -> float:
    """All-gather of `size` bytes a rank, or the reduce-scatter back: rings through all GPUs of a node at once."""
    if ranks == 1:
        return 0.0
    inside = cluster.inside.seconds(ranks - 1, size * (ranks - 1))
    nodes = ranks / cluster.gpus_per_node
    between = cluster.between.seconds(nodes - 1, size * (nodes - 1)) if nodes > 1 else 0.0
    return max(inside, between)
