"""Peak memory of a call over what was allocated before it: the inputs, and a flush buffer is not among them."""

from collections.abc import Callable

import torch

# Share of the memory that libraries may keep for themselves.
_WORKSPACES = 0.01


def peak_bytes(call: Callable[[], object], device: torch.device) -> int:
    """The allocator's peak during `call`, in bytes, over what was allocated when it began."""
    return _cuda_peak(call, device) if device.type == "cuda" else _cpu_peak(call)


def has_memory_back(device: torch.device) -> bool:
    """Whether a GPU's allocator holds next to nothing, libraries' workspaces: a process that ran out can go on."""
    if device.type != "cuda":
        return False
    held = torch.cuda.memory_reserved(device)
    return held < _WORKSPACES * torch.cuda.get_device_properties(device).total_memory


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
