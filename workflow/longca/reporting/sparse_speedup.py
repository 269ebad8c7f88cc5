"""What sparsity gains: a kernel's time on the map that keeps everything over its time on a sparser one.

The dense reference is the same kernel on the map of density 1, not another kernel's, nor its own dense form: the
same code with the same lists, so that only skipping makes the difference.
"""

from collections.abc import Sequence

from longca.measure.skipping import MOST_TIME
from longca.reporting.cells import Cell, Place
from longca.reporting.sections import Section, by_setting, kernel_section, setting

_NOTE = (
    "The same kernel's time on the map of density 1 over its time here: 1 / density where only kept cells cost "
    f"time, 1 where nothing is skipped. One whose sparsest map takes over {MOST_TIME:.0%} of the time is fallback."
)


def speedups(cells: Sequence[Cell]) -> list[float | None]:
    """For each cell the speed-up over the same kernel on the map of density 1; None where either has no number."""
    whole = {(cell.kernel, cell.place): cell for cell in cells if cell.place.density == 1}
    return [_speedup(cell, whole.get((cell.kernel, cell.place._replace(density=1.0)))) for cell in cells]


def speedup_sections(cells: Sequence[Cell]) -> list[Section]:
    """Speed-ups by pattern, length, block and density x kernel, a section a pass; none without maps of density 1."""
    gains = {_key(cell): gain for cell, gain in zip(cells, speedups(cells), strict=True)}
    sparser = [cell for cell in cells if cell.place.density != 1]
    if len(sparser) == len(cells):
        return []
    return [
        kernel_section(
            f"{place.pass_.capitalize()} speed-up over the same kernel at density 1, {setting(place, cells)}",
            group,
            lambda cell: gains[_key(cell)],
            best=max,
            note=_NOTE,
        )
        for place, group in by_setting(sparser)
    ]


def _key(cell: Cell) -> tuple[str, Place]:
    return cell.kernel, cell.place


def _speedup(cell: Cell, whole: Cell | None) -> float | None:
    own, all_of_it = cell.latency("p50"), whole.latency("p50") if whole else None
    return all_of_it / own if own and all_of_it else None
