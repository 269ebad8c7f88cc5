"""The identity of what runs on ranks: mechanism, what all mechanisms share, and the local kernel."""

from functools import cache

from longca.closure import closure_digest, digest
from longca.kernels.fingerprint import measured_fingerprint as kernel_measured
from longca.kernels.fingerprint import source_fingerprint as kernel_source
from longca.parallel.registry import mechanism_module

_FAMILY = "context_parallel"
# A mask's slices stand for themselves by their digest; shardings and restriction are part of what runs.
_WITHOUT = ("longca.errors", "longca.names", "longca.masks.mask", "longca.masks.patterns", "longca.kernels")


@cache
def source_fingerprint(mechanism: str, kernel: str) -> str:
    """Digest of the source of a mechanism and a local kernel and of the kernel's pins in envs/."""
    return digest(_mechanism_source(mechanism), kernel_source(_FAMILY, kernel))


def measured_fingerprint(mechanism: str, kernel: str, versions: dict[str, str | None]) -> str:
    """The same, of the versions really imported."""
    return digest(_mechanism_source(mechanism), kernel_measured(_FAMILY, kernel, versions))


def _mechanism_source(mechanism: str) -> str:
    modules = mechanism_module(mechanism), "longca.parallel.mechanism", "longca.parallel.peer_memory"
    return digest(*(closure_digest(module, _WITHOUT) for module in modules))
