"""The block-sparse table for reading: throughput, speed-up, peak memory, and what each kernel did where."""

from collections.abc import Sequence

from longca.reporting.cells import Cell, cells_of
from longca.reporting.long import Row
from longca.reporting.sections import Section, by_setting, kernel_section, setting, throughput_sections
from longca.reporting.sparse_speedup import speedup_sections
from longca.reporting.words import NOT_IN_GRID, count, plain, status_words

_MIB = 2**20


def sparse_sections(rows: Sequence[Row]) -> list[Section]:
    """All sections of the table `sparse`, from its long rows."""
    cells = cells_of(rows)
    return [
        *throughput_sections(cells),
        *speedup_sections(cells),
        *_memory_sections(cells),
        *_status_sections(cells),
    ]


def _memory_sections(cells: Sequence[Cell]) -> list[Section]:
    return [
        kernel_section(
            f"{place.pass_.capitalize()} peak memory over the inputs in MiB, {setting(place, cells)}",
            group,
            lambda cell: None if cell.peak_memory_bytes is None else cell.peak_memory_bytes / _MIB,
            best=min,
        )
        for place, group in by_setting(cells)
    ]


def _status_sections(cells: Sequence[Cell]) -> list[Section]:
    """Kernels across, blocks, heads and passes down: a device's statuses over all lengths and densities."""
    return [_statuses(device, cells) for device in dict.fromkeys(cell.place.device for cell in cells)]


def _statuses(device: str, cells: Sequence[Cell]) -> Section:
    kernels = list(dict.fromkeys(cell.kernel for cell in cells))
    found: dict[tuple[str, str, str, str], dict[str, list[str]]] = {}
    for cell in cells:
        place = cell.place
        if place.device == device:
            key = place.pattern, str(place.block), place.heads, place.pass_
            found.setdefault(key, {}).setdefault(cell.kernel, []).extend(row["status"] for row in cell.rows)
    rows = tuple(
        (*key, *(status_words(count(seen[kernel])) if kernel in seen else NOT_IN_GRID for kernel in kernels))
        for key, seen in found.items()
    )
    return Section(
        f"Status of the block-sparse kernels over all lengths and densities, {plain(device)}",
        ("Pattern", "Block (tokens)", "Heads", "Pass", *kernels),
        rows,
        keys=4,
    )
