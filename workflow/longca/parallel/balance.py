"""Dealing chunks of unequal work to ranks: equal work, and as equal a number of chunks as can be."""

from collections.abc import Sequence


def deal_chunks(areas: Sequence[int], ranks: int) -> list[int]:
    """The rank of each chunk; ranks get equally many chunks, give or take one.

    Largest first to the rank with the least work among those that have room, then swaps between the most
    loaded rank and another while one lowers the greater load of the two.
    """
    room = [len(areas) // ranks + (rank < len(areas) % ranks) for rank in range(ranks)]
    load = [0] * ranks
    owners = [0] * len(areas)
    for chunk in sorted(range(len(areas)), key=lambda chunk: -areas[chunk]):
        owner = min((rank for rank in range(ranks) if room[rank]), key=lambda rank: (load[rank], rank))
        owners[chunk] = owner
        load[owner] += areas[chunk]
        room[owner] -= 1
    while _improve(areas, owners, load):
        pass
    return owners


def _improve(areas: Sequence[int], owners: list[int], load: list[int]) -> bool:
    """The best swap that takes work off the most loaded rank, if there is one.

    Each swap lowers the sum of the squared loads, so they come to an end.
    """
    top = max(range(len(load)), key=load.__getitem__)
    best: tuple[int, int, int] | None = None
    for ours in (chunk for chunk, owner in enumerate(owners) if owner == top):
        for theirs, owner in enumerate(owners):
            moved = areas[ours] - areas[theirs]
            if owner == top or moved <= 0:
                continue
            after = max(load[top] - moved, load[owner] + moved)
            if after < load[top] and (best is None or after < best[0]):
                best = (after, ours, theirs)
    if best is None:
        return False
    _, ours, theirs = best
    moved = areas[ours] - areas[theirs]
    load[top] -= moved
    load[owners[theirs]] += moved
    owners[ours], owners[theirs] = owners[theirs], owners[ours]
    return True
