"""The native form of a mask, as a library without masks takes it: whole or packed sequences, causal or in a window.

A library names the forms it has; which patterns it computes follows from lowering a sample of each pattern.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from longca.kernels.interface import UnsupportedError
from longca.masks.mask import Mask, draw_mask
from longca.masks.patterns import PATTERNS
from longca.masks.views import varlen, window
from longca.masks.views.unavailable import ViewUnavailable

if TYPE_CHECKING:
    import torch

FORMS = ("full", "causal", "window", "causal window", "varlen full", "varlen causal")

# Samples small enough for every parameter to matter, as every pattern's form is one for all lengths.
_SEQLEN, _DOCUMENTS = 512, (200, 1, 311)
_PARAMETERS = {"window": 32, "global_tokens": 32, "block": 64}


@dataclass(frozen=True)
class Packed:
    """Packed sequences: cumulative lengths int32 [sequences + 1] of queries and keys, and their longest."""

    cu_seqlens_q: np.ndarray
    cu_seqlens_k: np.ndarray

    @property
    def longest(self) -> tuple[int, int]:
        """The longest sequence of queries and of keys, in tokens."""
        return int(np.diff(self.cu_seqlens_q).max()), int(np.diff(self.cu_seqlens_k).max())

    def on(self, device: "torch.device | str") -> "tuple[torch.Tensor, torch.Tensor]":
        """Both cumulative lengths as tensors."""
        import torch

        return torch.from_numpy(self.cu_seqlens_q).to(device), torch.from_numpy(self.cu_seqlens_k).to(device)


@dataclass(frozen=True)
class NativeForm:
    """A mask in words a library without masks knows.

    name: one of FORMS. causal: no query sees past itself. left, right: inclusive distances, -1 for no bound; set for
    the windows alone. packed: of the varlen forms alone; causal is then of each sequence.
    """

    name: str
    causal: bool = False
    left: int = -1
    right: int = -1
    packed: Packed | None = None


def native_form(mask: Mask, forms: Iterable[str] = FORMS) -> NativeForm:
    """The mask's native form. Raises UnsupportedError where it has none among `forms`."""
    form = find_native_form(mask)
    if form is None or form.name not in forms:
        raise UnsupportedError(_no_form(mask.pattern if form is None else form.name, forms))
    return form


def find_native_form(mask: Mask) -> NativeForm | None:
    """The mask's native form, or None where neither one window nor packed sequences keep exactly its cells."""
    try:
        band = window.lower(mask.slices, mask.seqlen, mask.seqlen)
    except ViewUnavailable:
        return _packed_form(mask)
    if band.left < 0 and band.right <= 0:
        return NativeForm("causal", causal=True) if band.causal else NativeForm("full")
    return NativeForm("causal window" if band.causal else "window", band.causal, band.left, band.right)


def _packed_form(mask: Mask) -> NativeForm | None:
    try:
        view = varlen.lower(mask.slices, mask.seqlen, mask.seqlen)
    except ViewUnavailable:
        return None
    packed = Packed(view.cu_seqlens_q, view.cu_seqlens_k)
    return NativeForm("varlen causal" if view.causal else "varlen full", view.causal, packed=packed)


def patterns_of(forms: Iterable[str]) -> frozenset[str]:
    """The static patterns whose masks have one of these forms."""
    known = set(forms)
    return frozenset(pattern for pattern, form in _forms_by_pattern().items() if form in known)


def reasons_without(forms: Iterable[str]) -> dict[str, str]:
    """For each other pattern why a library with these forms does not compute it, for `Support.without`."""
    known = tuple(forms)
    return {
        pattern: _no_form(form or pattern, known)
        for pattern, form in _forms_by_pattern().items()
        if form not in known
    }


@cache
def _forms_by_pattern() -> dict[str, str | None]:
    found = {}
    for name, pattern in PATTERNS.items():
        sizes = {key: _PARAMETERS[key] for key in pattern.parameters if key in _PARAMETERS}
        documents = _DOCUMENTS if pattern.takes_documents else None
        form = find_native_form(draw_mask(name, _SEQLEN, parameters=sizes, documents=documents))
        found[name] = form.name if form else None
    return found


def _no_form(what: str, forms: Iterable[str]) -> str:
    return f"has no native form for {what}, only {', '.join(forms)}"
