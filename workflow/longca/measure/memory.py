"""Peak memory of a call over what was allocated before it: the inputs, and a flush buffer is not among them."""

from collections.abc import Callable

import torch


def peak_bytes(call: Callable[[], object], device: torch.device) -> int:
    """The allocator's peak during `call`, in bytes, over what was allocated when it began."""
    return _cuda_peak(call, device) if device.type == "cuda" else _cpu_peak(call)


def _cuda_peak(call: Callable[[], object], device: torch.device) -> int:
    torch.cuda.synchronize(device)
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated(device)
    torch.cuda.reset_peak_memory_stats(device)
    result = call()
    torch.cuda.synchronize(device)
    peak = torch.cuda.max_memory_allocated(device) - before
    del result
    return peak


def _cpu_peak(call: Callable[[], object]) -> int:
    """From the profiler's record of every allocation: torch's CPU allocator keeps no peak of its own."""
    # torch.profiler's own imports all of torch's compiler before it starts, seconds of each process.
    from torch.autograd.profiler import profile

    with profile(profile_memory=True) as seen:
        result = call()
    assert seen.kineto_results is not None
    events = [event for event in seen.kineto_results.events() if event.name() == "[memory]"]
    held = peak = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        held += event.nbytes()
        peak = max(peak, held)
    del result
    return peak
