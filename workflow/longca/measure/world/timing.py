"""Timing collective calls: all ranks begin together, each times itself, and calls take turns."""

import time
from collections.abc import Callable, Sequence

import torch
import torch.distributed as dist

from longca.measure.timing import (
    CUDA_FLUSH_BYTES,
    FEWEST_SAMPLES,
    HEAD_START_CYCLES,
    cpu_flush_bytes,
    first_call,
)
from longca.measure.world.together import Together

Call = Callable[[], object]
# A pass over ranks is many launches, a message a head and peer among them: the host needs so much more of a head start.
_LAUNCHES = 4


def repetitions_for(
    call: Call,
    device: torch.device,
    together: Together,
    warmups: int,
    repetitions: int,
    sampling_s: float | None,
) -> int:
    """Warm a call up; how often to time it then, the same on all ranks: `repetitions`, or what sampling_s allows."""
    spent_s = usual_s = 0.0
    for _ in range(warmups):
        usual_s = together.most(first_call(call, device)) / 1e3
        spent_s += usual_s
        if sampling_s is not None and spent_s > sampling_s:
            break
    if sampling_s is None or not usual_s:
        return repetitions
    return min(repetitions, max(FEWEST_SAMPLES, int(sampling_s / usual_s)))


def time_in_turns(
    calls: Sequence[Call], device: torch.device, together: Together, repetitions: int, flushes: bool
) -> list[list[float]]:
    """Milliseconds this rank takes of each of `repetitions` rounds, for each call; caches are flushed before each.

    On a GPU the ranks' queues are aligned by a collective in front of the first event, on a CPU by a barrier.
    flushes: whether this rank flushes; of the ranks that share a CPU's cache it is one.
    """
    if device.type == "cuda":
        return _time_cuda(calls, device, repetitions)
    return _time_cpu(calls, together, repetitions, flushes)


def _time_cuda(calls: Sequence[Call], device: torch.device, repetitions: int) -> list[list[float]]:
    flush = torch.empty(CUDA_FLUSH_BYTES, dtype=torch.uint8, device=device)
    token = torch.zeros(1, device=device)
    events = [
        [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(repetitions)] for _ in calls
    ]
    for number in range(repetitions):
        for call, of_call in zip(calls, events, strict=True):
            start, stop = of_call[number]
            flush.zero_()
            torch.cuda._sleep(_LAUNCHES * HEAD_START_CYCLES)
            dist.all_reduce(token)
            start.record()
            call()
            stop.record()
    torch.cuda.synchronize(device)
    return [[start.elapsed_time(stop) for start, stop in of_call] for of_call in events]


def _time_cpu(
    calls: Sequence[Call], together: Together, repetitions: int, flushes: bool
) -> list[list[float]]:
    flush = torch.empty(cpu_flush_bytes(), dtype=torch.uint8) if flushes else None
    samples: list[list[float]] = [[] for _ in calls]
    for _ in range(repetitions):
        for call, of_call in zip(calls, samples, strict=True):
            if flush is not None:
                flush.zero_()
            together.barrier()
            start = time.perf_counter_ns()
            call()
            of_call.append((time.perf_counter_ns() - start) / 1e6)
    return samples
