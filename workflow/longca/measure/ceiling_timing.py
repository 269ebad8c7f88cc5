"""Measuring a device's ceilings: a large matrix product, and a copy in its memory."""

import statistics
from collections.abc import Callable

import torch

from longca.errors import LongcaError
from longca.measure.ceilings import Ceilings
from longca.measure.device import choose_device, device_name
from longca.measure.device_lock import timing_lock
from longca.measure.timing import time_calls

_REPETITIONS = 20
_WARMUPS = 3
# Rows and columns of the product, and bytes of the copy: far more than any cache holds, seconds in all.
_SIZES = {"cuda": (8192, 1 << 30), "cpu": (2048, 256 << 20)}


def measure_ceilings(wanted: str, dtype: str) -> Ceilings:
    """Measure the device for auto, cpu or cuda, nothing else timed on it meanwhile. Raises LongcaError for no dtype."""
    kind = getattr(torch, dtype, None)
    if not isinstance(kind, torch.dtype):
        raise LongcaError(f"{dtype!r} is no dtype of torch")
    with timing_lock(wanted):
        device = choose_device(wanted)
        size, copied = _SIZES[device.type]
        left, right = (torch.randn(size, size, device=device).to(kind) for _ in range(2))
        product_ms = _median_ms(lambda: left @ right, device)
        source = torch.ones(copied, dtype=torch.uint8, device=device)
        target = torch.empty_like(source)
        copy_ms = _median_ms(lambda: target.copy_(source), device)
        name = device_name(device)
    return Ceilings(name, dtype, 2 * size**3 / product_ms / 1e9, 2 * copied / copy_ms / 1e6)


def _median_ms(call: Callable[[], object], device: torch.device) -> float:
    for _ in range(_WARMUPS):
        call()
    return statistics.median(time_calls(call, device, _REPETITIONS))
