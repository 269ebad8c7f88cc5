"""What is here to measure with: devices, libraries, and for every kernel whether its library really imports."""

import os
import platform

import psutil
from rich.console import Console
from rich.table import Table
from rich.text import Text

from longca.kernels.registry import FAMILIES, KernelModuleError, kernel_names, load_kernel
from longca.measure.device_probe import gpus
from longca.measure.worker_client import Worker, WorkerLostError


def examine(console: Console) -> None:
    """Print devices and a table of kernels; each library is imported in a worker process of its own."""
    here = gpus()
    console.print(f"Python {platform.python_version()} on {platform.platform()}", highlight=False)
    memory = psutil.virtual_memory().total / 2**30
    console.print(f"processor: {os.cpu_count()} cores, {memory:.0f} GiB of memory", highlight=False)
    console.print(
        "\n".join(f"GPU: {gpu}" for gpu in here) or "no NVIDIA GPU: kernels run on the CPU", highlight=False
    )
    table = Table()
    for column in ("kernel", "family", "versions", "here"):
        table.add_column(column)
    names = [(family, name) for family in FAMILIES for name in kernel_names(family)]
    with console.status("importing libraries"):
        for family, name in names:
            versions, verdict = _examine(family, name, "cuda" if here else "cpu")
            table.add_row(*(Text(cell) for cell in (name, family, versions, verdict)))
    console.print(table)


def _examine(family: str, name: str, device: str) -> tuple[str, str]:
    """Versions of a kernel's distributions, and `ready` or why it cannot run."""
    try:
        if device not in load_kernel(family, name).support.passes:
            return "", f"does not run on {device}"
        with Worker(family, name, device, None, 600) as worker:
            loaded = worker.load()
    except KernelModuleError as error:
        return "", f"missing: {error}"
    except WorkerLostError as error:
        return "", f"crashed: {error}"
    versions = ", ".join(
        f"{package} {version or 'not installed'}" for package, version in loaded.versions.items()
    )
    return versions, "ready" if loaded.missing is None else f"missing: {loaded.missing}"
