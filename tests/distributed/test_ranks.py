"""What many ranks add to one: rounding, memory, autograd, order of calls, and ranks that fail."""

import multiprocessing
from dataclasses import replace
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist
from parallel_cases import Case, build, error, gather, local_inputs, oracle_of, run_cases
from worlds import exit_codes, run_world, start_world

from longca.errors import LongcaError
from longca.kernels.interface import UnsupportedError
from longca.measure.memory import peak_bytes
from longca.ops import segments
from longca.parallel.groups import Groups
from longca.parallel.shards import scatter
from longca.parallel.topology import Topology

BFLOAT16 = {"dtype": "bfloat16", "seqlen": 256, "sharding": "zigzag", "pattern": "causal", "heads": (2, 1)}


def _bfloat16_errors(rank, size):
    """Root mean square errors of a ring, of the whole tensors."""
    case = Case("ring_p2p", Topology(ring=size), **BFLOAT16)
    with Groups(case.topology) as groups:
        mechanism = build(case, groups)
        x = local_inputs(case, mechanism)
        got = {"out": mechanism.forward(x["q"], x["k"], x["v"])}
        got["dq"], got["dk"], got["dv"] = mechanism.backward(x["dout"])
        want = oracle_of(case.pattern, case.heads, case.seqlen, case.dtype)
        sharding = mechanism.setting.sharding
        return {
            name: float(
                (gather(tensor, sharding, case.topology).double() - want[name]).square().mean().sqrt()
            )
            for name, tensor in got.items()
        }


def test_the_error_does_not_grow_with_the_ring(tmp_path):
    # Each partial is rounded to bfloat16 once by the kernel, and the sum once more; the number of them adds nothing.
    alone, two, eight = (run_world(n, _bfloat16_errors, n, tmp_path / str(n))[0] for n in (1, 2, 8))
    for name in alone:
        assert two[name] < 2 * alone[name], name
        assert eight[name] < 1.2 * two[name], name


def _peaks(rank, size):
    """Peak bytes of a forward and of a backward with 128 tokens a rank, seen by the profiler of rank 0."""
    case = Case("ring_p2p", Topology(ring=size), "contiguous", "full", heads=(2, 1), seqlen=128 * size)
    with Groups(case.topology) as groups:
        mechanism = build(case, groups)
        x = local_inputs(case, mechanism)
        calls = (
            lambda: mechanism.forward(x["q"], x["k"], x["v"]),
            lambda: mechanism.backward(x["dout"]),
        )
        if rank:
            for call in calls:
                call()
            return None
        return [peak_bytes(call, torch.device("cpu")) for call in calls]


def test_memory_of_a_ring_does_not_grow_with_it(tmp_path):
    two, four, eight = (run_world(n, _peaks, n, tmp_path / str(n))[0] for n in (2, 4, 8))
    for least, *others in zip(two, four, eight, strict=True):
        assert least > 128 * 2 * 16 * 4  # the output alone
        assert max(others) < 1.05 * least


def _autograd(rank, case):
    """Gradients through autograd of two forwards before one backward."""
    with Groups(case.topology) as groups:
        mechanism = build(case, groups)
        x = local_inputs(case, mechanism)
        q, k, v = (x[name].requires_grad_() for name in "qkv")
        first = mechanism.attention(q, k, v)
        second = mechanism.attention(q * 2, k, v)
        got = torch.autograd.grad(first, (q, k, v), x["dout"])
        torch.autograd.grad(second, (q, k, v), x["dout"])
        want = oracle_of(case.pattern, case.heads, case.seqlen, case.dtype)
        return [
            error(gradient, scatter(want[name], mechanism.shard))
            for gradient, name in zip(got, ("dq", "dk", "dv"), strict=True)
        ]


@pytest.mark.parametrize(
    ("mechanism", "topology"), [("ulysses", Topology(2)), ("ring_p2p", Topology(ring=2))]
)
def test_autograd(mechanism, topology, tmp_path):
    case = Case(mechanism, topology, "zigzag", "causal_document")
    for errors in run_world(2, _autograd, case, tmp_path):
        assert max(errors) < 5e-6


class _Failing:
    """A kernel that raises on its second call, on one rank."""

    plan = staticmethod(segments.plan)
    backward = staticmethod(segments.backward)

    def __init__(self, fails):
        self.calls, self.fails = 0, fails

    def forward(self, *arguments):
        self.calls += 1
        if self.fails and self.calls == 2:
            raise MemoryError("no more memory on this rank")
        return segments.forward(*arguments)


def _one_fails(rank, case):
    with Groups(case.topology) as groups:
        mechanism = build(case, groups, _Failing(fails=rank == 1))
        x = local_inputs(case, mechanism)
        mechanism.forward(x["q"], x["k"], x["v"])
        mechanism.backward(x["dout"])


@pytest.mark.parametrize(
    ("mechanism", "topology"),
    [
        ("ring_p2p", Topology(ring=3)),
        ("ring_allgather", Topology(ring=3)),
        ("loongtrain", Topology(1, 3, 3)),
    ],
)
def test_a_rank_that_raises_ends_all_ranks(mechanism, topology, tmp_path):
    case = Case(mechanism, topology, "contiguous", "full")
    codes = exit_codes(start_world(3, _one_fails, case, tmp_path, timeout_s=20), within_s=60)
    assert codes == [1, 1, 1]
    assert not list(tmp_path.glob("rank*.json"))


def _next_case_runs(rank, case):
    """What the failed case says on this rank, and the errors of the same case after it."""
    try:
        with Groups(case.topology, timeout=timedelta(seconds=3)) as groups:
            mechanism = build(case, groups, _Failing(fails=rank == 1))
            x = local_inputs(case, mechanism)
            mechanism.forward(x["q"], x["k"], x["v"])
            mechanism.backward(x["dout"])
        said = "finished"
    except (MemoryError, RuntimeError) as error:
        said = type(error).__name__
    return said, run_cases(rank, [case])[case.name]["errors"]


@pytest.mark.parametrize(
    ("mechanism", "topology"),
    [("ring_p2p", Topology(ring=3)), ("ring_allgather", Topology(ring=3)), ("loongtrain", Topology(1, 3, 3))],
)
def test_after_a_case_that_failed_the_next_one_runs_in_the_same_processes(mechanism, topology, tmp_path):
    case = Case(mechanism, topology, "contiguous", "full")
    said, errors = zip(*run_world(3, _next_case_runs, case, tmp_path), strict=True)
    assert said[1] == "MemoryError"
    assert said[0] == said[2] == "RuntimeError"
    assert all(error < 5e-6 for rank in errors for error in rank.values())


def _example(rank, code):
    exec(code, {})


def test_the_example_of_the_documentation_runs(repository, tmp_path):
    text = (repository / "docs" / "context_parallel.md").read_text()
    code = text.split("```python")[1].split("```")[0].replace('dist.init_process_group("gloo")', "")
    run_world(4, _example, code, tmp_path)


def _one_stays_away(rank, argument):
    """Rank 1 makes its groups and never calls; it waits to be let go while the others should give up."""
    case, gone = argument
    with Groups(case.topology, timeout=timedelta(seconds=2)) as groups:
        mechanism = build(case, groups)
        if rank == 1:
            gone.wait()
            raise RuntimeError("let go")
        x = local_inputs(case, mechanism)
        mechanism.forward(x["q"], x["k"], x["v"])


@pytest.mark.parametrize(
    ("mechanism", "topology"),
    [
        ("ulysses", Topology(3)),
        ("ring_p2p", Topology(ring=3)),
        ("ring_allgather", Topology(ring=3)),
    ],
)
def test_a_rank_that_hangs_is_given_up_within_the_timeout(mechanism, topology, tmp_path):
    gone = multiprocessing.get_context("forkserver").Event()
    case = Case(mechanism, topology, "contiguous", "full", heads=(3, 3))
    processes = start_world(3, _one_stays_away, (case, gone), tmp_path, timeout_s=60)
    codes = exit_codes([processes[0], processes[2]], within_s=40)
    assert processes[1].is_alive()
    gone.set()
    assert (codes, exit_codes([processes[1]], within_s=40)) == ([1, 1], [1])


def _closed_groups(rank, argument):
    """Groups are given back: the world's own is the only one left."""
    for _ in range(3):
        with Groups(Topology(1, 4, 2)):
            pass
    return len(dist.distributed_c10d._world.pg_map)


def test_groups_are_closed(tmp_path):
    assert run_world(4, _closed_groups, None, tmp_path) == [1] * 4


class _Watched:
    """The segments kernel, with the shapes of its calls written down; or one that computes nothing."""

    def __init__(self, computes):
        self.computes, self.calls = computes, {"forward": [], "backward": []}

    def plan(self, *arguments):
        return segments.plan(*arguments) if self.computes else None

    def _seen(self, pass_, q, k, plan):
        self.calls[pass_].append([q.shape[1], k.shape[1], q.shape[0], k.shape[0], int(plan.handle)])

    def forward(self, q, k, v, plan):
        self._seen("forward", q, k, plan)
        return segments.forward(q, k, v, plan)

    def backward(self, q, k, v, out, lse, dout, plan):
        self._seen("backward", q, k, plan)
        return segments.backward(q, k, v, out, lse, dout, plan)


def _computation_and_communication(rank, case):
    """The calls foretold and made, and bytes sent with and without them."""
    answer = {}
    with Groups(case.topology) as groups:
        for computes in (True, False):
            kernel = _Watched(computes)
            mechanism = build(case, groups, kernel)
            x = local_inputs(case, mechanism)
            groups.traffic.clear()
            out = mechanism.forward(x["q"], x["k"], x["v"])
            mechanism.backward(x["dout"])
            foretold = sorted([*call[:4], int(call.plan.handle)] for call in mechanism.calls)
            made = [sorted(calls) for calls in kernel.calls.values()]
            answer[str(computes)] = [foretold, made, groups.traffic.total, float(out.abs().sum())]
    return answer


@pytest.mark.parametrize(
    "case",
    [
        Case("ulysses", Topology(2), "contiguous", "causal", heads=(8, 4), head_chunks=2),
        Case("ring_p2p", Topology(ring=2), "contiguous", "causal_document"),
        Case("ring_allgather", Topology(ring=2), "balanced", "gaps", heads=(8, 4)),
        Case("loongtrain", Topology(1, 2, 2), "zigzag", "causal"),
    ],
    ids=lambda case: case.mechanism,
)
def test_computation_and_communication_stand_apart(case, tmp_path):
    for rank in run_world(2, _computation_and_communication, case, tmp_path):
        foretold, made, sent, size = rank["True"]
        assert made == [foretold, foretold]
        assert foretold and sent and size
        assert rank["False"] == [[], [[], []], sent, 0.0]


def _mistakes(rank, argument):
    """What each mistake is answered with, on every rank alike and before anything is sent."""
    right = Case("usp", Topology(2, 1), "zigzag", "causal", seqlen=64)
    said = []

    def expect(kind, call):
        try:
            call()
        except kind as error:
            said.append(str(error))

    expect(LongcaError, lambda: Groups(Topology(3, 1)))
    with Groups(right.topology) as groups:
        expect(LongcaError, lambda: build(replace(right, mechanism="ring_p2p"), groups))
        expect(LongcaError, lambda: build(replace(right, topology=Topology(1, 2)), groups))
        expect(LongcaError, lambda: build(replace(right, head_chunks=2), groups))
        expect(UnsupportedError, lambda: build(replace(right, heads=(3, 1)), groups))
        mechanism = build(right, groups)
        x = local_inputs(right, mechanism)
        expect(ValueError, lambda: mechanism.backward(x["dout"]))
        expect(ValueError, lambda: mechanism.forward(x["q"], x["k"], x["v"][:, 1:]))
        expect(ValueError, lambda: mechanism.forward(x["q"].double(), x["k"], x["v"]))
        assert groups.traffic.total == 0
    return said


def test_mistakes_are_named(tmp_path):
    for said in run_world(2, _mistakes, None, tmp_path):
        assert said == [
            "topology ulysses=3 ring=1: is for 3 ranks; the world has 2",
            "topology ulysses=2: must be 1",
            "sharding has 2 shards; must have ring=1",
            "head_chunks=2: must divide the 1 KV heads of a rank",
            "3 query heads do not divide over 2 Ulysses ranks",
            "call forward first",
            "v is (2, 31, 16) torch.float32; must be contiguous (2, 32, 16) torch.float32",
            "q is (4, 32, 16) torch.float64; must be contiguous (4, 32, 16) torch.float32",
        ]
