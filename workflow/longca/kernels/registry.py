"""All kernels by family and name. A new one is a line here, or an entry point `longca.kernels` of another package.

The modules are imported only when a kernel is used, and import their libraries only when they prepare a case.
"""

import importlib
import re
from functools import cache
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from longca.errors import LongcaError
from longca.names import unknown_name

if TYPE_CHECKING:
    from longca.kernels.interface import Kernel

_OWN = {
    "dense": {
        "naive": "longca.kernels.dense.naive",
        "sdpa": "longca.kernels.dense.sdpa",
        "sdpa_flash": "longca.kernels.dense.sdpa_flash",
        "sdpa_cudnn": "longca.kernels.dense.sdpa_cudnn",
        "sdpa_efficient": "longca.kernels.dense.sdpa_efficient",
        "sdpa_math": "longca.kernels.dense.sdpa_math",
        "fa": "longca.kernels.dense.fa",
        "fa2": "longca.kernels.dense.fa2",
        "fa3": "longca.kernels.dense.fa3",
        "fa4": "longca.kernels.dense.fa4",
        "cudnn": "longca.kernels.dense.cudnn",
        "flex": "longca.kernels.dense.flex",
        "flex_flash": "longca.kernels.dense.flex_flash",
        "flashmask": "longca.kernels.dense.flashmask",
        "flashinfer": "longca.kernels.dense.flashinfer",
        "segments": "longca.kernels.dense.segments",
    },
    "sparse": {
        "vsa": "longca.kernels.sparse.vsa",
        "vsa_triton": "longca.kernels.sparse.vsa_triton",
        "fa2_sparse": "longca.kernels.sparse.fa2_sparse",
        "flex": "longca.kernels.sparse.flex",
        "flashinfer": "longca.kernels.sparse.flashinfer",
        "fa4": "longca.kernels.sparse.fa4",
        "segments": "longca.kernels.sparse.segments",
    },
    # What computes on a rank (longca.parallel): it returns out and lse, and takes them back.
    "context_parallel": {
        "segments": "longca.parallel.local_segments",
        "fa3": "longca.parallel.local_fa3",
        "fa4": "longca.parallel.local_fa4",
        "fa2": "longca.parallel.local_fa2",
        "sdpa_cudnn": "longca.parallel.local_cudnn",
    },
}
FAMILIES = tuple(_OWN)


class KernelModuleError(LongcaError):
    """A kernel's module cannot be imported or defines no kernel. Of its cases it makes the status missing."""


@cache
def _modules(family: str) -> dict[str, str]:
    """Kernel name -> `module` or `module:attribute`. Entry points: `<name>` is dense, others `<family>.<name>`."""
    modules = dict(_OWN[family])
    for point in entry_points(group="longca.kernels"):
        owner, _, name = point.name.rpartition(".")
        if (owner or "dense") not in _OWN:
            raise LongcaError(
                f"entry point longca.kernels: {point.name}: {unknown_name(owner, _OWN, 'kernel family')}"
            )
        if not re.fullmatch("[a-z0-9_]+", name):
            right = "right: lower-case letters, digits and _"
            raise LongcaError(f"entry point longca.kernels: {point.name}: is no kernel name; {right}")
        if (owner or "dense") == family:
            if name in modules:
                raise LongcaError(
                    f"entry point longca.kernels: {point.name} = {point.value}: this name is taken"
                )
            modules[name] = point.value
    return modules


def kernel_names(family: str) -> tuple[str, ...]:
    """The kernels of a family (dense, sparse), in the order of the registry."""
    return tuple(_modules(family))


def kernel_module(family: str, name: str) -> str:
    """The module that defines a kernel. Raises LongcaError for an unknown name."""
    modules = _modules(family)
    if name not in modules:
        raise LongcaError(unknown_name(name, modules, f"{family} kernel"))
    return modules[name].partition(":")[0]


def load_kernel(family: str, name: str) -> "Kernel":
    """Import a kernel's module, not its library, and return its declaration.

    Raises LongcaError for an unknown name, and KernelModuleError where the module or its kernel is not there.
    """
    module = kernel_module(family, name)
    attribute = _modules(family)[name].partition(":")[2] or "KERNEL"
    try:
        return getattr(importlib.import_module(module), attribute)
    except Exception as error:  # another package's module raises anything
        raise KernelModuleError(f"kernel {name}: {type(error).__name__}: {error}") from error
