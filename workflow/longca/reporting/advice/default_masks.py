"""The masks of a study of which only the records are known."""

from collections.abc import Sequence

from longca.errors import LongcaError
from longca.masks.mask import Mask
from longca.masks.patterns import PATTERNS
from longca.reporting.long import Row
from longca.reporting.scale.areas import Draw
from longca.study.masks import DEFAULT_MASKS


def default_draw(rows: Sequence[Row], source: str) -> Draw:
    """Masks of the default parameters, seed and lengths, where they are what was measured: their digest says so.

    What it returns raises LongcaError where they are not.
    """
    longest: dict[tuple[str, str], Row] = {}
    for row in rows:
        if row["sample"] == 0 and row.get("mask_digest") is not None:
            place = (row["pattern"], row["dataset"])
            # Only of a long sequence are a window and one twice as wide other masks.
            if place not in longest or row["seqlen"] > longest[place]["seqlen"]:
                longest[place] = row

    def draw(pattern: str, seqlen: int, dataset: str) -> Mask:
        known, row = PATTERNS[pattern], longest.get((pattern, dataset))
        if row and (known.is_drawn or known.parameters):
            measured = DEFAULT_MASKS.draw(pattern, row["seqlen"], dataset)
            if measured.digest != row["mask_digest"]:
                raise LongcaError(
                    f"{source} was measured on other masks of {pattern} than the defaults draw; right: --study and its "
                    "config, which says how they are drawn"
                )
        return DEFAULT_MASKS.draw(pattern, seqlen, dataset)

    return draw
