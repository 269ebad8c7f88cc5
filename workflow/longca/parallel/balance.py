"""Dealing chunks of unequal work to ranks: equal work first, then as equal a number of rows as that leaves."""

from collections.abc import Sequence

ENOUGH = 1.03  # greatest over mean work that is not worth unequal rows
ROOM = 1.25  # rows a rank may hold, over the mean, where equal rows leave the work unequal


def deal_chunks(areas: Sequence[int], rows: Sequence[int], ranks: int) -> list[int]:
    """The rank of each chunk, from the area and the rows of each.

    Ranks get equally many rows, give or take a chunk; where work is left unequal so, up to ROOM times the mean.
    """
    mean = sum(rows) / ranks
    dealt = _Deal(areas, rows, ranks, mean + max(rows) - 1)
    if max(dealt.load) * ranks > ENOUGH * sum(areas):
        looser = _Deal(areas, rows, ranks, ROOM * mean + max(rows) - 1)
        if max(looser.load) < max(dealt.load):
            dealt = looser
    return dealt.owners


class _Deal:
    """Largest first to the rank with the least work that has room; then exchanges off the most loaded rank."""

    def __init__(self, areas: Sequence[int], rows: Sequence[int], ranks: int, most_rows: float) -> None:
        self.areas, self.rows, self.most_rows = areas, rows, most_rows
        self.load, self.held = [0] * ranks, [0] * ranks
        self.owners = [-1] * len(areas)
        for chunk in sorted(range(len(areas)), key=lambda chunk: -areas[chunk]):
            fits = [rank for rank in range(ranks) if self.held[rank] + rows[chunk] <= most_rows]
            # Chunks of several sizes may leave gaps too small for the last ones: then the emptiest takes them.
            best = min(fits, key=lambda rank: (self.load[rank], self.held[rank])) if fits else None
            self._give(chunk, min(range(ranks), key=self.held.__getitem__) if best is None else best)
        while self._improve():
            pass

    def _give(self, chunk: int, rank: int) -> None:
        owner = self.owners[chunk]
        if owner >= 0:
            self.load[owner] -= self.areas[chunk]
            self.held[owner] -= self.rows[chunk]
        self.owners[chunk] = rank
        self.load[rank] += self.areas[chunk]
        self.held[rank] += self.rows[chunk]

    def _improve(self) -> bool:
        """The exchange of two chunks that lowers the greater of two loads the most, if there is one.

        Each lowers the sum of the squared loads, so they come to an end.
        """
        top = max(range(len(self.load)), key=self.load.__getitem__)
        best: tuple[int, int, int] | None = None
        for ours in (chunk for chunk, owner in enumerate(self.owners) if owner == top):
            for theirs, owner in enumerate(self.owners):
                moved = self.areas[ours] - self.areas[theirs]
                if owner == top or moved <= 0:
                    continue
                after = max(self.load[top] - moved, self.load[owner] + moved)
                if after >= self.load[top] or (best and after >= best[0]):
                    continue
                shift = self.rows[ours] - self.rows[theirs]
                if max(self.held[top] - shift, self.held[owner] + shift) <= self.most_rows:
                    best = after, ours, theirs
        if best is None:
            return False
        _, ours, theirs = best
        other = self.owners[theirs]
        self._give(ours, other)
        self._give(theirs, top)
        return True
