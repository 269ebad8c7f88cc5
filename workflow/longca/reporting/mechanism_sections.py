"""The context-parallel table for reading: what each mechanism came to, what of it is communication, what it takes."""

from collections.abc import Callable, Iterable, Sequence

from longca.reporting.cells import Cell, cells_of
from longca.reporting.long import Row
from longca.reporting.mechanisms import as_mechanisms, efficiency, most
from longca.reporting.sections import Section, by_setting, kernel_section, setting, throughput_sections

_MIB = 2**20
Best = Callable[[Iterable[float]], float] | None
# Title, value of a cell, which is the best, and what the value means.
_FURTHER: tuple[tuple[str, Callable[[Cell], float | None], Best, str], ...] = (
    (
        "efficiency (computation alone over the whole)",
        efficiency,
        max,
        "1 less the efficiency is the share of the pass in which communication is exposed, merging and sums included.",
    ),
    ("communication alone in ms", most("communication_ms"), min, "The slowest rank, nothing computed."),
    ("MiB sent by the busiest rank", most("communication_bytes", _MIB), min, "Counted at every send."),
    (
        "imbalance (greatest over mean area of the shards)",
        most("imbalance"),
        None,
        "1 where every rank has the same work.",
    ),
    ("peak memory in MiB, the rank with the most", most("peak_memory_bytes", _MIB), min, "Over the inputs."),
)


def mechanism_sections(rows: Sequence[Row]) -> list[Section]:
    """Throughput a rank first; then a section a pass for each further figure."""
    cells = cells_of(as_mechanisms(rows))
    return [*throughput_sections(cells), *_further(cells)]


def _further(cells: Sequence[Cell]) -> list[Section]:
    return [
        kernel_section(
            f"{place.pass_.capitalize()} {title}, {setting(place, cells)}", group, value, best, note
        )
        for title, value, best, note in _FURTHER
        for place, group in by_setting(cells)
    ]
