"""How many cells a mask keeps at a length: as a study measured it, elsewhere as it draws it."""

from collections.abc import Callable, Sequence

from longca.data.packing import AUTO
from longca.masks.mask import Mask
from longca.masks.patterns import PATTERNS
from longca.reporting.long import Row

# Sample 0 of a pattern at so many tokens, over documents of a dataset.
Draw = Callable[[str, int, str], Mask]


class Areas:
    """The areas of one study's masks, sample 0 of each. rows: long rows of what it measured."""

    def __init__(self, draw: Draw, rows: Sequence[Row] = ()) -> None:
        self._draw = draw
        self._known = {
            (row["pattern"], row["dataset"], row["seqlen"]): float(row["area"])
            for row in rows
            if row["sample"] == 0 and row.get("area") is not None
        }

    def of(self, pattern: str, dataset: str, seqlen: int) -> float:
        """Cells that the mask keeps; a pattern without sampled documents is the same under every dataset."""
        place = (pattern, dataset if PATTERNS[pattern].takes_documents else AUTO, seqlen)
        if place not in self._known:
            self._known[place] = float(self._draw(pattern, seqlen, place[1]).area)
        return self._known[place]
