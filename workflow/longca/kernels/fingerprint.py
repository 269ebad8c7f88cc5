"""The identity of a kernel's code: what must be the same for an earlier measurement to hold."""

import re
from functools import cache
from pathlib import Path

from longca.closure import closure_digest, digest
from longca.kernels.registry import KernelModuleError, kernel_module, load_kernel

_ENVS = Path(__file__).parents[3] / "envs"
# Shared by all kernels, and no part of how one computes: the interface, the grid, and how a mask is drawn, for whose
# result the mask's digest stands. The views, through which a kernel reads its mask, are part of it.
_SHARED = (
    "longca.kernels.interface",
    "longca.kernels.registry",
    "longca.cases",
    "longca.study",
    "longca.errors",
    "longca.names",
    "longca.data",
    "longca.masks.mask",
    "longca.masks.blocks",
    "longca.masks.patterns",
)


@cache
def source_fingerprint(family: str, kernel: str) -> str:
    """Digest of a kernel's source closure and of the pins of its distributions in envs/. The same on every machine."""
    try:
        distributions = load_kernel(family, kernel).distributions
    except KernelModuleError:  # its cases will say so; its source alone identifies it
        distributions = ()
    pins = [f"{name}=={pinned_version(name)}" for name in distributions]
    return digest(closure_digest(kernel_module(family, kernel), _SHARED), *pins)


def measured_fingerprint(family: str, kernel: str, versions: dict[str, str | None]) -> str:
    """Digest of a kernel's source closure and of the versions of its distributions that were really imported."""
    source = closure_digest(kernel_module(family, kernel), _SHARED)
    return digest(source, *(f"{name}=={versions[name]}" for name in sorted(versions)))


def pinned_version(distribution: str) -> str | None:
    """The version envs/*.txt pin a distribution to; several sets may pin different ones: all, sorted, joined by |."""
    pattern = re.compile(rf"{re.escape(distribution)}(?:\[[^\]]*\])?\s*==\s*([^\s;#]+)", re.IGNORECASE)
    lines = [line for file in sorted(_ENVS.rglob("*.txt")) for line in file.read_text().splitlines()]
    versions = sorted({match[1] for line in lines if (match := pattern.match(line.strip()))})
    return "|".join(versions) or None
