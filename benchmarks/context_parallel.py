"""Times the mechanisms of context parallelism on the ranks of one machine, beside what they compute and what they send.

torchrun --nproc-per-node 2 benchmarks/context_parallel.py --tokens 65536 [--mechanism ring_p2p] [--pattern full]

Over NCCL where there are GPUs, else over gloo (`--tokens 512 --heads 8-2 --head-dim 64` takes seconds). For each
mechanism and pass, in turns: the whole pass; the same calls of the local kernel on random tensors, without
communication; the communication without those calls. The slowest rank counts; the median of `--repeats` calls
is printed. Efficiency is computation over the whole. Outputs are compared with nothing here: tests do that.
"""

import time
from collections.abc import Callable
from statistics import median
from typing import Annotated, Any

import torch
import torch.distributed as dist
import typer

from longca.kernels.interface import UnsupportedError
from longca.masks.mask import draw_mask
from longca.ops import segments
from longca.parallel.groups import Groups
from longca.parallel.local import Setting
from longca.parallel.mechanism import Mechanism
from longca.parallel.registry import MECHANISMS, load_mechanism
from longca.parallel.sharding import shard_sequence
from longca.parallel.topology import Topology, default_windows, really
from longca.parallel.work import imbalance

Call = Callable[[], object]


class NoKernel:
    """A local kernel that is never called: what is left is communication."""

    forward = staticmethod(segments.forward)
    backward = staticmethod(segments.backward)

    @staticmethod
    def plan(*arguments: Any) -> None:
        """No plan, so no call."""


def main(
    tokens: Annotated[int, typer.Option(help="Tokens a rank.")] = 8192,
    mechanism: Annotated[list[str] | None, typer.Option(help="Mechanisms; all by default.")] = None,
    pattern: Annotated[list[str] | None, typer.Option(help="Patterns; full and causal by default.")] = None,
    sharding: Annotated[str, typer.Option(help="Sharding of the ring.")] = "zigzag",
    ulysses: Annotated[int, typer.Option(help="U of usp and loongtrain.")] = 1,
    head_chunks: Annotated[int, typer.Option(help="Chunks of heads where heads are exchanged.")] = 1,
    heads: Annotated[str, typer.Option(help="Query and KV heads.")] = "64-8",
    head_dim: Annotated[int, typer.Option(help="Head dimension.")] = 128,
    repeats: Annotated[int, typer.Option(help="Timed calls.")] = 10,
) -> None:
    """Print one line a mechanism, pattern and pass, on rank 0."""
    on_gpu = torch.cuda.is_available()
    dist.init_process_group("nccl" if on_gpu else "gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    if on_gpu:
        torch.cuda.set_device(rank % torch.cuda.device_count())
    device = torch.device("cuda" if on_gpu else "cpu")
    q_heads, kv_heads = map(int, heads.split("-"))
    for name in mechanism or MECHANISMS:
        topology = _topology(name, world, ulysses)
        with Groups(topology) as groups:
            for drawn in pattern or ("full", "causal"):
                mask = draw_mask(drawn, tokens * world, context_parallel=True)
                dealt = shard_sequence(sharding, topology.ring, mask.seqlen, mask.slices, mask.documents)
                shapes = (q_heads, kv_heads, head_dim, torch.bfloat16, device)
                setting = Setting(mask.slices, dealt, *shapes, segments)
                chunks = head_chunks if topology.ulysses > 1 else 1
                try:
                    calls = _calls(name, groups, setting, chunks)
                except UnsupportedError as error:
                    _print(rank, f"{name:15}{drawn:22}unsupported: {error}")
                    continue
                label = f"{name:15}{drawn:22}{really(name, topology):15}"
                balance = imbalance(mask.slices, mask.seqlen, dealt.shards)
                for pass_, (work, kinds) in calls.items():
                    groups.traffic.clear()
                    work()
                    sent = groups.traffic.total
                    whole, computed, sending = _times(kinds, device, repeats)
                    flops = (4 if pass_ == "forward" else 10) * mask.area * q_heads * head_dim / world
                    _print(
                        rank,
                        f"{label}{pass_:9} {whole:10.3f} ms  computation {computed:10.3f}  communication "
                        f"{sending:10.3f}  efficiency {computed / whole:5.3f}  {flops / whole / 1e9:7.1f} TFLOP/s "
                        f"a rank  imbalance {balance:5.3f}  {sent / 1e6:9.1f} MB sent",
                    )
    dist.destroy_process_group()


def _topology(mechanism: str, world: int, ulysses: int) -> Topology:
    if mechanism == "ulysses":
        return Topology(ulysses=world)
    if mechanism in ("ring_p2p", "ring_allgather"):
        return Topology(ring=world)
    ring = world // ulysses
    return Topology(ulysses, ring, default_windows(ring) if mechanism == "loongtrain" else 1)


def _calls(
    name: str, groups: Groups, setting: Setting, chunks: int
) -> dict[str, tuple[Call, tuple[Call, Call, Call]]]:
    """By pass: the whole, and (the whole, its computation, its communication)."""
    form = load_mechanism(name)
    whole = Mechanism(form, groups, setting, chunks)
    silent = Mechanism(form, groups, _without_kernel(setting), chunks)
    q, dout = (_random(setting, setting.q_heads, whole.shard.rows) for _ in range(2))
    k, v = (_random(setting, setting.kv_heads, whole.shard.rows) for _ in range(2))
    prepared = []
    for queries, keys, q_heads, kv_heads, plan in whole.calls:
        near, far = _random(setting, q_heads, queries), _random(setting, kv_heads, keys)
        out, lse = segments.forward(near, far, far, plan)
        prepared.append((near, far, far, out, lse, near, plan))
    for mechanism in (whole, silent):
        mechanism.forward(q, k, v)

    def forwards() -> None:
        for near, key, value, _, _, _, plan in prepared:
            segments.forward(near, key, value, plan)

    def backwards() -> None:
        for call in prepared:
            segments.backward(*call)

    forward = (lambda: whole.forward(q, k, v), forwards, lambda: silent.forward(q, k, v))
    backward = (lambda: whole.backward(dout), backwards, lambda: silent.backward(dout))
    return {"forward": (forward[0], forward), "backward": (backward[0], backward)}


def _without_kernel(setting: Setting) -> Setting:
    shapes = (setting.q_heads, setting.kv_heads, setting.head_dim, setting.dtype, setting.device)
    return Setting(setting.slices, setting.sharding, *shapes, NoKernel())


def _random(setting: Setting, heads: int, rows: int) -> torch.Tensor:
    return torch.randn(heads, rows, setting.head_dim, device=setting.device).to(setting.dtype)


def _times(calls: tuple[Call, ...], device: torch.device, repeats: int) -> list[float]:
    """Median ms of each call on the slowest rank; the calls take turns, two rounds warm up."""
    samples: list[list[float]] = [[] for _ in calls]
    for _ in range(repeats + 2):
        for call, taken in zip(calls, samples, strict=True):
            dist.barrier()
            taken.append(_time(call, device))
    slowest = torch.tensor([taken[2:] for taken in samples], device=device)
    dist.all_reduce(slowest, dist.ReduceOp.MAX)
    return [median(row) for row in slowest.tolist()]


def _time(call: Call, device: torch.device) -> float:
    if device.type == "cpu":
        begin = time.perf_counter()
        call()
        return (time.perf_counter() - begin) * 1e3
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    begin.record()
    call()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end)


def _print(rank: int, line: str) -> None:
    if rank == 0:
        print(line, flush=True)


if __name__ == "__main__":
    typer.run(main)
