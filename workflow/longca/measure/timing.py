"""Timing calls on a device. Knows no kernel; a kernel knows no timer."""

import time
from collections.abc import Callable
from pathlib import Path

import torch

from longca.study.model import FEWEST_SAMPLES

# What a call leaves in the caches must not speed the next one up: this many bytes are written between calls.
CUDA_FLUSH_BYTES = 256 << 20
_CPU_CACHE = Path("/sys/devices/system/cpu/cpu0/cache/index3/size")
# A virtual machine of two cores may say that the last-level cache of its whole socket is its own: 480 MiB were seen.
# Twice that would be most of the memory of a small job, and writing it take far longer than what is timed.
CPU_FLUSH_MOST_BYTES = 128 << 20
# About 1 ms at 2 GHz: the host runs ahead of the device, so that a slow launch does not read as a slow kernel. With a
# fifth of that, kernels of several launches on short sequences were seen to scatter on an H200.
HEAD_START_CYCLES = 2_000_000


def first_call(call: Callable[[], object], device: torch.device) -> float:
    """Milliseconds of one call as it comes, compilation and loading included, measured on the host."""
    start = time.perf_counter()
    call()
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return (time.perf_counter() - start) * 1e3


def warm_up(
    call: Callable[[], object], device: torch.device, warmups: int, repetitions: int, sampling_s: float | None
) -> int:
    """Call `warmups` times; how often to time the call then: `repetitions`, or what `sampling_s` seconds allow.

    Where warm-ups alone take longer than that, one is enough.
    """
    if sampling_s is None:
        for _ in range(warmups):
            call()
        return repetitions
    spent_s = usual_s = 0.0
    for _ in range(warmups):
        usual_s = first_call(call, device) / 1e3
        spent_s += usual_s
        if spent_s > sampling_s:
            break
    affordable = int(sampling_s / usual_s) if usual_s else repetitions
    return min(repetitions, max(FEWEST_SAMPLES, affordable))


def time_calls(call: Callable[[], object], device: torch.device, repetitions: int) -> list[float]:
    """Milliseconds of each of `repetitions` calls; caches are flushed between them, outside the time."""
    return _time_cuda(call, device, repetitions) if device.type == "cuda" else _time_cpu(call, repetitions)


def _time_cuda(call: Callable[[], object], device: torch.device, repetitions: int) -> list[float]:
    flush = torch.empty(CUDA_FLUSH_BYTES, dtype=torch.uint8, device=device)
    events = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(repetitions)]
    for start, stop in events:
        flush.zero_()
        torch.cuda._sleep(HEAD_START_CYCLES)
        start.record()
        call()
        stop.record()
    torch.cuda.synchronize(device)
    return [start.elapsed_time(stop) for start, stop in events]


def _time_cpu(call: Callable[[], object], repetitions: int) -> list[float]:
    flush = torch.empty(cpu_flush_bytes(), dtype=torch.uint8)
    samples = []
    for _ in range(repetitions):
        flush.zero_()
        start = time.perf_counter_ns()
        call()
        samples.append((time.perf_counter_ns() - start) / 1e6)
    return samples


def cpu_flush_bytes(cache: Path = _CPU_CACHE) -> int:
    """Twice the last-level cache, at most CPU_FLUSH_MOST_BYTES; 64 MiB where Linux does not say how large that is.

    cache: the file in which it does, as `32768K` or `480M`.
    """
    if not cache.exists():
        return 64 << 20
    text = cache.read_text().strip()
    size = int(text.rstrip("KM")) << {"K": 10, "M": 20}.get(text[-1], 0)
    return min(2 * size, CPU_FLUSH_MOST_BYTES)
