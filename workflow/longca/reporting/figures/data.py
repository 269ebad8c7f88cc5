"""The values behind a figure: plain rows, one a cell, small enough to stand in the figure's own JSON."""

import json
import textwrap
from collections.abc import Sequence
from functools import cache
from typing import Any

import altair as alt

from longca.masks.patterns import PATTERNS
from longca.reporting.cells import Cell, Place
from longca.reporting.words import plain

MIB = 2**20


def cell_values(cells: Sequence[Cell], chosen: Sequence[str] = ()) -> list[dict[str, Any]]:
    """One row a cell: its place, numbers where it is ok, words where it is not, and what a tooltip says.

    The machine is in it where they were measured on several.

    Settings that are `chosen` from a menu are columns of their own, others that vary stand in the panel's title.
    """
    varying = [name for name in varying_settings(cells) if name not in chosen]
    several = len({cell.place.dataset for cell in cells}) > 1
    several_machines = len(_machines(cells)) > 1
    return [
        {name: getattr(cell.place, name) for name in chosen}
        | _values(cell, several_machines)
        | {"subject": subject(cell.place, several), "panel": panel_title(cell.place, varying)}
        for cell in cells
    ]


def inline(values: Sequence[dict[str, Any]]) -> alt.InlineData:
    """Rows as a chart's data: one text, which Altair does not walk through; `draw` makes rows of it again."""
    return alt.InlineData(values=json.dumps(values, allow_nan=False))


def subject(place: Place, several_datasets: bool) -> str:
    """The pattern a cell is of, with the dataset of its documents where there are several."""
    if several_datasets and takes_documents(place):
        return f"{place.pattern} ({place.dataset})"
    return place.pattern


def takes_documents(place: Place) -> bool:
    """Whether a place's pattern is drawn over documents; others are the same in every dataset."""
    return place.pattern in PATTERNS and PATTERNS[place.pattern].takes_documents


@cache
def in_lines(*texts: str, width: int = 26) -> str:
    """Texts one below the other, each broken to `width` characters: what a narrow panel's title has room for."""
    return "\n".join(line for text in texts for line in textwrap.wrap(text, width, break_on_hyphens=False))


def varying_settings(cells: Sequence[Cell]) -> list[str]:
    """Fields of a place, beside pass, pattern, dataset and length, that differ between cells: a panel each."""
    names = ("heads", "head_dim", "dtype", "device")
    return [name for name in names if len({getattr(cell.place, name) for cell in cells}) > 1]


def panel_title(place: Place, varying: Sequence[str]) -> str:
    """The panel a cell is drawn in: its pass, and each setting that varies. Panels never share a line."""
    said = {
        "heads": "heads {}",
        "head_dim": "head dimension {}",
        "dtype": "{}",
        "device": "{}",
    }
    return ", ".join([place.pass_, *(said[name].format(getattr(place, name)) for name in varying)])


def common_settings(cells: Sequence[Cell]) -> list[str]:
    """What all cells share, for the lines of a subtitle: their settings, and the machine if it was one."""
    varying, place = varying_settings(cells), cells[0].place
    said = {
        "heads": f"heads {place.heads}",
        "head_dim": f"head dimension {place.head_dim}",
        "dtype": place.dtype,
        "device": plain(place.device),
    }
    settings = ", ".join(text for name, text in said.items() if name not in varying)
    machines = _machines(cells)
    return [settings, f"measured on {machines[0]}"] if len(machines) == 1 else [settings]


def in_order(values: Sequence[dict[str, Any]], field: str) -> list[Any]:
    """The different values of a field, in the order of the grid."""
    return list(dict.fromkeys(row[field] for row in values))


def _values(cell: Cell, several_machines: bool) -> dict[str, Any]:
    place, peak = cell.place, cell.peak_memory_bytes
    row = {
        "kernel": cell.kernel,
        "pattern": place.pattern,
        "seqlen": place.seqlen,
        "dataset": place.dataset if takes_documents(place) else None,
        "block": place.block,
        "density": _density(cell),
        "status": cell.words,
        "reason": plain("; ".join(cell.reasons), 160),
        "tflops": cell.throughput("p50"),
        # A slow call is a low throughput: p80 of latency is the lower end.
        "tflops_low": cell.throughput("p80"),
        "tflops_high": cell.throughput("p20"),
        "latency_ms_p20": cell.latency("p20"),
        "latency_ms_p50": cell.latency("p50"),
        "latency_ms_p80": cell.latency("p80"),
        "peak_mib": None if peak is None else peak / MIB,
        "backend": ", ".join(dict.fromkeys(text for r in cell.rows if (text := r.get("backend")))),
        "flags": ", ".join(cell.flags),
        "machine": cell.machine if several_machines else None,
    }
    return {name: _short(value) for name, value in row.items() if value not in (None, "")}


def _machines(cells: Sequence[Cell]) -> list[str]:
    """The machines of cells with a number, each once."""
    return list(dict.fromkeys(cell.machine for cell in cells if cell.ok))


def _density(cell: Cell) -> float | None:
    """Of block-sparse cells the share really kept, the nominal one while no sample is measured."""
    kept = [row["density"] for row in cell.rows if row["density"] is not None]
    if cell.place.block is None or not kept:
        return cell.place.density
    return sum(kept) / len(kept)


def _short(value: Any) -> Any:
    return float(f"{value:.5g}") if isinstance(value, float) else value
