"""What a local kernel declares: the same as any kernel, and the calls a mechanism makes of it in place of `prepare`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from longca.kernels.interface import Support

if TYPE_CHECKING:
    from longca.parallel.local import LocalKernel


@dataclass(frozen=True)
class LocalForm:
    """One way to compute attention on a rank, over a mask restricted to its queries and the keys in hand.

    load(): the calls, their library imported. backend(plan): the path a plan really takes. imports, distributions,
    majors: as of a Kernel. Whether a restricted mask is one it knows, `plan` says by UnsupportedError.
    """

    summary: str
    support: Support
    load: Callable[[], LocalKernel]
    backend: Callable[[Any], str]
    imports: tuple[str, ...] = ("torch",)
    distributions: tuple[str, ...] = ("torch",)
    majors: Mapping[str, int] = field(default_factory=dict)
