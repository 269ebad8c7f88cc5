"""What a kernel is: a declaration of what it supports, and `prepare`, which returns what is timed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from longca.cases import Case

if TYPE_CHECKING:
    import torch


class UnsupportedError(Exception):
    """The kernel says no to this case; the message is the reason, in the library's words where it gave one."""


class FallbackError(Exception):
    """Another path than the kernel's own ran; the message says which."""


@dataclass(frozen=True)
class Support:
    """What a kernel can do, declared beside it. The support table and every refusal are derived from this.

    passes: for each device (cpu, cuda) it runs on, the passes it computes there.
    without: reasons for what is left out, by the name of a pass, pattern or device; elsewhere a general sentence.
    head_dims, capability: None allows any; capability is the least CUDA compute capability, capability_below the first
    one that it no longer runs on.
    blocks: of a block-sparse kernel, by pass the block sizes in tokens; a pass that is not named takes any.
    seqlen_multiple: tokens that every length must be a multiple of.
    """

    patterns: frozenset[str]
    passes: Mapping[str, tuple[str, ...]]
    dtypes: frozenset[str] = frozenset({"float16", "bfloat16"})
    head_dims: frozenset[int] | None = None
    grouped_heads: bool = True
    capability: tuple[int, int] | None = None
    capability_below: tuple[int, int] | None = None
    blocks: Mapping[str, frozenset[int]] = field(default_factory=dict)
    seqlen_multiple: int = 1
    without: Mapping[str, str] = field(default_factory=dict)

    def reason_against(
        self, case: Case, device: str, capability: tuple[int, int] | None = None
    ) -> str | None:
        """Why this case is not supported on `device` (cpu or cuda), or None where it is.

        capability: the CUDA compute capability at hand; None where no GPU is, and then no reason against anything.
        """
        if device not in self.passes:
            return self.without.get(device, f"does not run on {device}")
        if capability is not None and not self._runs_on(capability):
            return f"{self._generations()}, not on {_dotted(capability)}"
        if case.pattern not in self.patterns:
            return self.without.get(case.pattern, f"does not know the pattern {case.pattern}")
        if case.pass_ not in self.passes[device]:
            return self.without.get(case.pass_, f"has no {case.pass_} pass on {device}")
        if case.dtype not in self.dtypes:
            return f"does not compute in {case.dtype}, only in {', '.join(sorted(self.dtypes))}"
        if self.head_dims is not None and case.head_dim not in self.head_dims:
            return f"head_dim {case.head_dim} is not among {', '.join(map(str, sorted(self.head_dims)))}"
        if not self.grouped_heads and case.q_heads != case.kv_heads:
            return "takes equal query and key-value heads only"
        sizes = self.blocks.get(case.pass_)
        if sizes is not None and case.block not in sizes:
            return f"takes blocks of {' and '.join(map(str, sorted(sizes)))} tokens only ({case.pass_})"
        if case.seqlen % self.seqlen_multiple:
            return f"takes lengths that are a multiple of {self.seqlen_multiple} only"
        return None

    def _runs_on(self, capability: tuple[int, int]) -> bool:
        enough = self.capability is None or capability >= self.capability
        return enough and (self.capability_below is None or capability < self.capability_below)

    def _generations(self) -> str:
        least = f" from {_dotted(self.capability)}" if self.capability else ""
        below = f" below {_dotted(self.capability_below)}" if self.capability_below else ""
        return f"runs on CUDA compute capability{least}{below}"


def _dotted(capability: tuple[int, int]) -> str:
    return ".".join(map(str, capability))


@dataclass(frozen=True)
class Tensors:
    """Contiguous standard-normal data: q, dout [q_heads, seqlen, head_dim]; k, v [kv_heads, seqlen, head_dim].

    `gradients` says whether leaves are to require gradients: true where the kernel has a backward on this device.
    """

    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    dout: torch.Tensor
    gradients: bool

    def leaves(self, layout: str) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """q, k, v as contiguous leaves in a layout of LAYOUTS: attention alone is timed, never a transposition."""
        return tuple(  # type: ignore[return-value]
            to_layout(tensor, layout).contiguous().detach().requires_grad_(self.gradients)
            for tensor in (self.q, self.k, self.v)
        )


LAYOUTS = ("hsd", "shd", "bhsd", "bshd")


def to_layout(tensor: torch.Tensor, layout: str) -> torch.Tensor:
    """A view of [heads, tokens, head_dim] in `layout`: letters b (1), h heads, s tokens, d head_dim."""
    if layout not in LAYOUTS:
        raise ValueError(f"layout {layout!r} is none of {', '.join(LAYOUTS)}")
    tensor = tensor.transpose(0, 1) if layout.endswith("shd") else tensor
    return tensor.unsqueeze(0) if layout.startswith("b") else tensor


def from_layout(tensor: torch.Tensor, layout: str) -> torch.Tensor:
    """The inverse of `to_layout`: a view [heads, tokens, head_dim]."""
    tensor = tensor.squeeze(0) if layout.startswith("b") else tensor
    return tensor.transpose(0, 1) if layout.endswith("shd") else tensor


@dataclass
class Prepared:
    """What is timed. `forward` returns out; `backward` returns dq, dk, dv of a forward it keeps, or is None.

    layout: of what they return, one of LAYOUTS. backend: the path that really runs and the form of mask it takes.
    release: drops the kept forward, so that the next `backward` makes one again (its memory is weighed that way).
    """

    forward: Callable[[], torch.Tensor]
    backward: Callable[[], tuple[torch.Tensor, ...]] | None
    release: Callable[[], None]
    layout: str
    backend: str


def prepared(
    attention: Callable[[torch.Tensor, torch.Tensor, torch.Tensor], torch.Tensor],
    tensors: Tensors,
    layout: str,
    backend: str,
) -> Prepared:
    """Wrap a differentiable `attention(q, k, v) -> out` over leaves in `layout`; gradients by torch.autograd.grad."""
    import torch

    q, k, v = tensors.leaves(layout)
    dout = to_layout(tensors.dout, layout).contiguous()
    kept: list[torch.Tensor] = []

    def forward() -> torch.Tensor:
        return attention(q, k, v)

    def backward() -> tuple[torch.Tensor, ...]:
        if not kept:
            kept.append(attention(q, k, v))
        return torch.autograd.grad(kept[0], (q, k, v), dout, retain_graph=True)

    return Prepared(forward, backward if tensors.gradients else None, kept.clear, layout, backend)


Prepare = Callable[[Case, Any, Tensors], Prepared]
"""prepare(case, mask, tensors): lower the mask (a Mask; a BlockMap for block-sparse kernels), plan and compile for one
case. Raises UnsupportedError or FallbackError. Libraries are imported in here."""


@dataclass(frozen=True)
class Kernel:
    """One way to compute attention on one device.

    imports: modules that must import; a failure is the status missing. distributions: packages whose version, pinned in
    envs/ and really imported, is part of the kernel's fingerprint. majors: the generation of a distribution that this
    kernel is for, where several share a module's name; another one is the status missing.
    """

    summary: str
    support: Support
    prepare: Prepare
    imports: tuple[str, ...] = ("torch",)
    distributions: tuple[str, ...] = ("torch",)
    majors: Mapping[str, int] = field(default_factory=dict)
