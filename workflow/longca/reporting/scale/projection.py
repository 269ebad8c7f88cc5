"""Projecting: every mechanism and topology on every number of GPUs of a cluster, and the best of each."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from longca.arrangement import topology_on
from longca.errors import LongcaError
from longca.parallel.clusters import Cluster
from longca.parallel.cost_model import Cost, KernelCost, Workload, calls, predict
from longca.parallel.registry import MECHANISMS
from longca.parallel.topology import Topology, really
from longca.reporting.scale.areas import Areas
from longca.reporting.scale.fit import Fit

WORLD_SIZES = (8, 16, 32, 64, 128, 256, 512, 1024)
# What a balanced sharding leaves at most, where the mask does not deal evenly by itself.
BALANCED = 1.03


@dataclass(frozen=True)
class Question:
    """What is asked: a local kernel on a pattern, tokens a rank, heads, pass, of elements of `element_bytes`."""

    kernel: str
    pattern: str
    dataset: str
    tokens: int
    q_heads: int
    kv_heads: int
    head_dim: int
    element_bytes: int
    pass_: str


@dataclass(frozen=True)
class Projected:
    """A mechanism on a topology of a cluster, as the model has it; cost None: it cannot run, for `reason`."""

    question: Question
    cluster: str
    world_size: int
    mechanism: str
    topology: Topology | None
    cost: Cost | None
    tflops: float | None
    reason: str | None = None


def project(fit: Fit, areas: Areas, question: Question, cluster: Cluster, world_size: int) -> list[Projected]:
    """The best topology of each mechanism, the fastest mechanism first; those that cannot run last, with the reason.

    Raises LongcaError where the fit knows no rate of the question's kernel on its pattern and pass.
    """
    return [one for (one,) in project_together(fit, areas, [question], cluster, world_size)]


def project_together(
    fit: Fit, areas: Areas, questions: Sequence[Question], cluster: Cluster, world_size: int
) -> list[tuple[Projected, ...]]:
    """As `project`, for passes that run after each other: each mechanism on the one topology of the least sum.

    Its q, k and v stay where a forward has sent them, so that no pass has a topology of its own. questions: of several
    passes, alike in all else.
    """
    passes = [_Pass.of(fit, areas, question, world_size) for question in questions]
    found = [_best(fit, passes, cluster, mechanism, world_size) for mechanism in MECHANISMS]
    return sorted(found, key=lambda listed: sum(one.cost.total_s if one.cost else inf for one in listed))


@dataclass(frozen=True)
class _Pass:
    """A question with its workload and what the kernel costs on it."""

    question: Question
    load: Workload
    kernel: KernelCost

    @classmethod
    def of(cls, fit: Fit, areas: Areas, question: Question, world_size: int) -> "_Pass":
        key = (question.kernel, question.pattern, question.pass_)
        if key not in fit.kernels:
            raise LongcaError(
                f"no measured rate of {question.kernel} on {question.pattern}, {question.pass_}"
            )
        return cls(question, _workload(areas, question, world_size), fit.kernels[key])

    def tflops(self, mechanism: str, topology: Topology, cost: Cost) -> float:
        """A GPU's. The rate is of the computation that the rank with the most has; throughput counts the mean."""
        computed_s = (
            cost.computation_s - calls(mechanism, topology, 1, self.load.kv_heads) * self.kernel.call_s
        )
        return computed_s * self.kernel.flops_per_s / self.load.imbalance / cost.total_s / 1e12


def _best(
    fit: Fit, passes: Sequence[_Pass], cluster: Cluster, mechanism: str, world_size: int
) -> tuple[Projected, ...]:
    q_heads = passes[0].question.q_heads
    costs = {
        topology: [
            fit.rubbed(mechanism, predict(mechanism, topology, one.load, one.kernel, cluster))
            for one in passes
        ]
        for topology in topologies(mechanism, world_size)
        if q_heads % topology.ulysses == 0
    }
    common = (cluster.name, world_size, mechanism)
    if not costs:
        reason = "has no topology of its own on so many ranks"
        if mechanism == "ulysses":
            reason = f"{q_heads} query heads do not divide over {world_size} ranks"
        return tuple(Projected(one.question, *common, None, None, None, reason) for one in passes)
    topology = min(costs, key=lambda shape: sum(cost.total_s for cost in costs[shape]))
    return tuple(
        Projected(one.question, *common, topology, cost, one.tflops(mechanism, topology, cost))
        for one, cost in zip(passes, costs[topology], strict=True)
    )


def topologies(mechanism: str, world_size: int) -> list[Topology]:
    """The topologies on which a mechanism is what its name says, heads over few ranks first."""
    divisors = (u for u in range(1, world_size + 1) if world_size % u == 0)
    found = dict.fromkeys(topology_on(mechanism, world_size, ulysses) for ulysses in divisors)
    return [topology for topology in found if really(mechanism, topology) == mechanism]


def _workload(areas: Areas, question: Question, world_size: int) -> Workload:
    seqlen = question.tokens * world_size
    return Workload(
        area=areas.of(question.pattern, question.dataset, seqlen),
        seqlen=seqlen,
        q_heads=question.q_heads,
        kv_heads=question.kv_heads,
        head_dim=question.head_dim,
        element_bytes=question.element_bytes,
        pass_=question.pass_,
        imbalance=1.0 if evenly_dealt(question.pattern) else BALANCED,
    )


def evenly_dealt(pattern: str) -> bool:
    """Whether every rank gets the same work by itself: of full, and of causal in a zigzag."""
    return pattern in ("full", "causal")
