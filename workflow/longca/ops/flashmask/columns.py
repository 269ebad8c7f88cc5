"""The column vectors of a FlashMask on the device, and the extrema of their blocks."""

from dataclasses import dataclass

import numpy as np
import torch

from longca.masks.views.flashmask import FlashMask

ALIGN = 128  # keys: every key block of the kernels divides it


@dataclass(frozen=True, eq=False)
class Columns:
    """vectors int32 [4, width]: LTS, LTE, UTS, UTE, width being the keys rounded up to ALIGN; keys past the last one
    are hidden from every query.

    A form reads only the vectors it needs (one to four, as in the paper): `causal`, the upper triangle is hidden;
    `lower_end`, what is hidden below the diagonal may end before the last query; `upper_start`, what is hidden above it
    may start after the first one.
    """

    vectors: torch.Tensor
    causal: bool
    lower_end: bool
    upper_start: bool

    @property
    def width(self) -> int:
        """Keys, rounded up."""
        return self.vectors.shape[1]

    @property
    def form(self) -> str:
        """The vectors that are read."""
        names = ["LTS", "LTE"][: 1 + self.lower_end]
        return " ".join(names + ([] if self.causal else ["UTS", "UTE"][not self.upper_start :]))

    def extrema(self, block: int) -> torch.Tensor:
        """int32 [8, blocks]: for each block of keys the least and the greatest LTS, LTE, UTS, UTE."""
        blocks = self.vectors.view(4, -1, block)
        return torch.stack([blocks.amin(-1), blocks.amax(-1)], dim=1).flatten(0, 1).contiguous()


def load(view: FlashMask, device: torch.device) -> Columns:
    """The view's vectors, copied to the device."""
    width = -(-view.keys // ALIGN) * ALIGN
    vectors = np.zeros((4, width), np.int32)
    vectors[1::2] = view.queries  # hidden on both sides, so that the extrema of a block are those of its keys
    vectors[:, : view.keys] = view.lts, view.lte, view.uts, view.ute
    lower, upper = view.lts < view.lte, view.uts < view.ute
    return Columns(
        torch.from_numpy(vectors).to(device),
        view.causal,
        bool((view.lte[lower] < view.queries).any()),
        bool((view.uts[upper] > 0).any()) and not view.causal,
    )
