"""The device and the software a measurement ran on: what a record's `environment` says."""

import os
import platform
from pathlib import Path
from typing import Any

import torch

from longca.measure.nvml import Gpu
from longca.revision import git_revision

# Dense 16-bit peak of the chip by the vendor's datasheet, TFLOP/s: a value above it is a fault of counting.
_PEAK_TFLOPS = {"H100": 989.0, "H200": 989.0, "H800": 989.0, "GH200": 989.0, "A100": 312.0, "B200": 2250.0}

# Bits of the throttle reasons that slow a kernel without anyone having asked: power brake, thermal, hardware slowdown.
_SLOWED = 0x08 | 0x20 | 0x40 | 0x80


def choose_device(wanted: str) -> torch.device:
    """The torch device for a config's auto, cpu or cuda."""
    if wanted == "auto":
        wanted = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(wanted, 0) if wanted == "cuda" else torch.device(wanted)


def describe(device: torch.device) -> dict[str, Any]:
    """Device, software and code revision; the same for every case a worker measures."""
    common = {
        "device": device_name(device),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "host": platform.node(),
        "threads": torch.get_num_threads(),
        "git_revision": git_revision(),
    }
    if device.type != "cuda":
        return common
    major, minor = torch.cuda.get_device_capability(device)
    return common | {
        "gpu_uuid": _gpu_uuid(device),
        "compute_capability": f"{major}.{minor}",
        "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version(),
        "driver": _gpu(device).driver_version(),
        "sm_count": torch.cuda.get_device_properties(device).multi_processor_count,
    }


def device_name(device: torch.device) -> str:
    """The model of the GPU, or of the processor with the threads torch uses of it."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    model = next(
        (line.partition(":")[2].strip() for line in lines if line.startswith("model name")),
        platform.machine(),
    )
    threads = torch.get_num_threads()
    return f"{model}, {threads} thread{'' if threads == 1 else 's'}"


def peak_tflops(device: torch.device) -> float | None:
    """The chip's dense 16-bit peak in TFLOP/s, or None where it is not known."""
    if device.type != "cuda":
        return None
    words = torch.cuda.get_device_name(device).replace("-", " ").split()
    return next((peak for name, peak in _PEAK_TFLOPS.items() if name in words), None)


def state(device: torch.device) -> dict[str, Any]:
    """Clocks, power and temperature of a GPU now; the load of a CPU, whose clocks a user may not read."""
    if device.type != "cuda":
        return {"load_1m": round(os.getloadavg()[0], 2)}
    return _gpu(device).state()


def throttled(state: dict[str, Any]) -> bool:
    """Whether the GPU was slowed for heat, power brake or hardware. At its power cap a card is as it always is."""
    reasons = str(state.get("throttle_reasons", "0x0"))
    return reasons.startswith("0x") and bool(int(reasons, 16) & _SLOWED)


def _gpu(device: torch.device) -> Gpu:
    return Gpu(_gpu_uuid(device))


def _gpu_uuid(device: torch.device) -> str:
    uuid = str(torch.cuda.get_device_properties(device).uuid)
    return uuid if uuid.startswith(("GPU-", "MIG-")) else f"GPU-{uuid}"
