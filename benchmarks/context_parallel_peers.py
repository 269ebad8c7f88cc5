"""Times our mechanisms beside ring-flash-attn (zigzag ring) and yunchang (ring, Ulysses) on a causal mask, in one run.

torchrun --nproc-per-node 2 benchmarks/context_parallel_peers.py --tokens 8192 --tokens 65536

On GPUs, which must be of one host and reach each other, ours send by copies, as `longca measure` does.
Both are over flash-attn 2; ours are over `--kernel` fa2, the same calls of the same library, and segments. All take
turns, call by call; the slowest rank counts; the median of `--repeats` rounds is printed, with the ratio of theirs to
ours (above 1 ours is faster). A peer that cannot be imported is named and left out. Each is checked against the first
of ours: the error printed is the norm of the difference of its output and gradients over the norm of ours.
"""

import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from types import ModuleType
from typing import Annotated, Any

import torch
import torch.distributed as dist
import typer

from longca.kernels.registry import load_kernel
from longca.masks.mask import draw_mask
from longca.parallel.groups import Groups
from longca.parallel.local import Setting
from longca.parallel.mechanism import Mechanism
from longca.parallel.peer_memory import PeerMemory
from longca.parallel.registry import load_mechanism
from longca.parallel.sharding import shard_sequence
from longca.parallel.topology import Topology

Call = Callable[[], Any]
# About 5 ms: a pass of any of them is many launches, and autograd's are the host's time, which is not compared.
_HEAD_START_CYCLES = 8_000_000


@dataclass
class Subject:
    """forward gives out, backward dq, dk, dv of its last forward, all [heads, rows, D] of this rank."""

    name: str
    forward: Call
    backward: Call


def main(
    tokens: Annotated[list[int] | None, typer.Option(help="Tokens a rank; repeatable.")] = None,
    kernel: Annotated[list[str] | None, typer.Option(help="Local kernels of ours; repeatable.")] = None,
    heads: Annotated[str, typer.Option(help="Query and KV heads.")] = "64-8",
    head_dim: Annotated[int, typer.Option(help="Head dimension.")] = 128,
    repeats: Annotated[int, typer.Option(help="Timed rounds.")] = 10,
) -> None:
    """Print a line a subject and pass, on rank 0."""
    on_gpu = torch.cuda.is_available()
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if on_gpu else torch.device("cpu")
    if on_gpu:
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if on_gpu else "gloo")
    q_heads, kv_heads = map(int, heads.split("-"))
    world = dist.get_world_size()
    for rows in tokens or [8192]:
        shapes = [(q_heads, rows, head_dim), *[(kv_heads, rows, head_dim)] * 2, (q_heads, rows, head_dim)]
        generator = torch.Generator(device).manual_seed(dist.get_rank())
        q, k, v, dout = (
            torch.randn(shape, device=device, generator=generator).bfloat16() for shape in shapes
        )
        for topology, peers in (
            (Topology(ring=world), (_ring_flash_attn, _yunchang_ring)),
            (Topology(ulysses=world), (_yunchang_ulysses,)),
        ):
            with Groups(topology, memory=PeerMemory if on_gpu else None) as groups:
                ours = [_ours(name, groups, q, k, v, dout) for name in kernel or ("fa2", "segments")]
                theirs = [subject for peer in peers if (subject := _attempt(peer, q, k, v, dout))]
                _compare(rows, ours, theirs, device, repeats)
    dist.destroy_process_group()


def _ours(name: str, groups: Groups, q: Any, k: Any, v: Any, dout: Any) -> Subject:
    topology = groups.topology
    mask = draw_mask("causal", q.shape[1] * topology.world_size)
    dealt = shard_sequence("zigzag", topology.ring, mask.seqlen, mask.slices)
    form = load_kernel("context_parallel", name)
    shape = (q.shape[0], k.shape[0], q.shape[2], q.dtype, q.device)
    setting = Setting(mask.slices, dealt, *shape, form.load())  # type: ignore[attr-defined]
    mechanism = Mechanism(load_mechanism("usp"), groups, setting)
    kind = "ring_p2p" if topology.ring > 1 else "ulysses"
    return Subject(
        f"{kind} over {name}", lambda: mechanism.forward(q, k, v), lambda: mechanism.backward(dout)
    )


def _ring_flash_attn(q: Any, k: Any, v: Any, dout: Any) -> Subject:
    # Its adapters want a version of transformers, and nothing of them is used here.
    adapters = ModuleType("ring_flash_attn.adapters")
    adapters.substitute_hf_flash_attn = adapters.update_ring_flash_attn_params = None  # type: ignore[attr-defined]
    sys.modules.setdefault("ring_flash_attn.adapters", adapters)
    from ring_flash_attn import zigzag_ring_flash_attn_func

    return _of_autograd(
        "ring-flash-attn zigzag",
        lambda q, k, v: zigzag_ring_flash_attn_func(q, k, v, causal=True),
        q,
        k,
        v,
        dout,
    )


def _yunchang_ring(q: Any, k: Any, v: Any, dout: Any) -> Subject:
    from yunchang import LongContextAttention, set_seq_parallel_pg
    from yunchang.kernels import AttnType

    world = dist.get_world_size()
    set_seq_parallel_pg(1, world, dist.get_rank(), world)
    layer = LongContextAttention(ring_impl_type="zigzag", attn_type=AttnType.FA)
    return _of_autograd("yunchang ring", lambda q, k, v: layer(q, k, v, causal=True), q, k, v, dout)


def _yunchang_ulysses(q: Any, k: Any, v: Any, dout: Any) -> Subject:
    # Its USP over a ring of one sends gradients from a rank to itself; this is its Ulysses without a ring.
    from yunchang import UlyssesAttention
    from yunchang.kernels import AttnType

    layer = UlyssesAttention(dist.group.WORLD, attn_type=AttnType.FA)
    return _of_autograd("yunchang Ulysses", lambda q, k, v: layer(q, k, v, causal=True), q, k, v, dout)


def _of_autograd(name: str, attention: Callable[..., Any], q: Any, k: Any, v: Any, dout: Any) -> Subject:
    """A differentiable attention over contiguous [1, rows, heads, D] leaves of the same numbers."""
    leaves = [x.transpose(0, 1)[None].contiguous().requires_grad_() for x in (q, k, v)]
    gradient = dout.transpose(0, 1)[None].contiguous()
    kept: list[torch.Tensor] = []

    def forward() -> Any:
        kept[:] = [attention(*leaves)]
        return _heads_first(kept[0].detach())

    def backward() -> Any:
        found = torch.autograd.grad(kept[0], leaves, gradient, retain_graph=True)
        return tuple(_heads_first(one) for one in found)

    return Subject(name, forward, backward)


def _heads_first(x: torch.Tensor) -> torch.Tensor:
    return x[0].transpose(0, 1)


def _attempt(peer: Callable[..., Subject], *tensors: Any) -> Subject | None:
    try:
        return peer(*tensors)
    except ImportError as error:
        _print(f"a peer is left out: {error}")
        return None


def _compare(
    rows: int, ours: list[Subject], theirs: list[Subject], device: torch.device, repeats: int
) -> None:
    subjects = [*ours, *theirs]
    right = (ours[0].forward(), *ours[0].backward())
    errors = {one.name: _error((one.forward(), *one.backward()), right) for one in subjects}
    for pass_ in ("forward", "backward"):
        calls = [getattr(one, pass_) for one in subjects]
        for one in subjects:
            one.forward()
        taken = dict(zip((one.name for one in subjects), _times(calls, device, repeats), strict=True))
        for name, milliseconds in taken.items():
            ratios = "".join(f"  {taken[peer.name] / milliseconds:5.3f} of {peer.name}" for peer in theirs)
            _print(f"{rows:7} {pass_:9} {name:26} {milliseconds:9.3f} ms  error {errors[name]:.1e}{ratios}")


def _error(found: tuple[torch.Tensor, ...], right: tuple[torch.Tensor, ...]) -> float:
    pairs = zip(found, right, strict=True)
    return max(float((a.float() - b.float()).norm() / b.float().norm()) for a, b in pairs)


def _times(calls: list[Call], device: torch.device, repeats: int) -> list[float]:
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
        start = time.perf_counter()
        call()
        return (time.perf_counter() - start) * 1e3
    token = torch.zeros(1, device=device)
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    torch.cuda._sleep(_HEAD_START_CYCLES)
    dist.all_reduce(token)
    begin.record()
    call()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end)


def _print(line: str) -> None:
    if dist.get_rank() == 0:
        print(line, flush=True)


if __name__ == "__main__":
    typer.run(main)
