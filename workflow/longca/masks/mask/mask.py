"""What a mask is: its slices, and what they were drawn from."""

from dataclasses import dataclass
from functools import cached_property

from longca.masks.slices import Slice, area, slices_digest


@dataclass(frozen=True)
class Mask:
    """One sample of a static pattern: `seqlen` queries against as many keys.

    documents: lengths in tokens, None where the pattern has none. parameters: every parameter the pattern
    takes. slices share no kept cell.
    """

    pattern: str
    seqlen: int
    dataset: str
    seed: int
    sample: int
    documents: tuple[int, ...] | None
    parameters: dict[str, int]
    slices: tuple[Slice, ...]

    @cached_property
    def area(self) -> int:
        """Cells kept."""
        return area(self.slices)

    @property
    def density(self) -> float:
        """Share of the seqlen x seqlen cells kept."""
        return self.area / self.seqlen**2

    @cached_property
    def digest(self) -> str:
        """sha256 (hex) of the kept cells: masks that keep the same cells share it."""
        return slices_digest(self.slices, self.seqlen, self.seqlen)
