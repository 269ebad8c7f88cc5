"""Axes and tooltips that several figures share, units on them."""

from collections.abc import Iterable, Sequence
from typing import Any

import altair as alt

# The layer a legend pick belongs to: the first one, for of another the legend would not hear a click. Altair would
# number it on and on, and the JSON would differ.
PICKED = "picked"


def pick_kernel() -> alt.Parameter:
    """A click on a kernel in the legend fades the others."""
    return alt.selection_point(name="pick", fields=["kernel"], bind="legend")


def length_axis(seqlens: Iterable[int]) -> alt.X:
    """Lengths on a base-2 logarithmic axis, each measured one a tick, as 512, 1k, 48k."""
    values = sorted(set(seqlens))
    label = (
        "datum.value >= 1024 && datum.value % 1024 == 0 ? datum.value / 1024 + 'k' : format(datum.value, 'd')"
    )
    # Room beside the first and the last point, in the same proportion.
    scale = alt.Scale(type="log", base=2, domain=[values[0] / 1.25, values[-1] * 1.25], nice=False)
    axis = alt.Axis(values=values, labelExpr=label, labelOverlap=True, grid=False)
    return alt.X("seqlen:Q", scale=scale, axis=axis, title="length (tokens, log scale)")


def tflops_axis(height: int) -> alt.Y:
    """Throughput from zero at `height` pixels up to the frame's top."""
    return alt.Y("tflops:Q", title="throughput (TFLOP/s)", scale=alt.Scale(zero=True, range=[height, 0]))


def panel_header() -> alt.Header:
    """The title of a panel, whole whatever its length: a line break in it is one."""
    return alt.Header(labelExpr="split(datum.label, '\\n')", labelLimit=0, labelAnchor="start")


def tooltips(values: Sequence[dict[str, Any]]) -> list[alt.Tooltip]:
    """All that the rows say, with units."""
    present = {name for row in values for name in row}
    said = {
        "kernel": "kernel",
        "pattern": "pattern",
        "dataset": "documents",
        "seqlen": "length (tokens)",
        "block": "block (tokens)",
        "density": "density",
        "panel": "pass",
        "heads": "heads",
        "status": "status",
        "reason": "reason",
        "tflops": "TFLOP/s",
        "latency_ms_p20": "latency p20 (ms)",
        "latency_ms_p50": "latency p50 (ms)",
        "latency_ms_p80": "latency p80 (ms)",
        "peak_mib": "peak memory (MiB)",
        "speedup": "speed-up over density 1",
        "backend": "backend",
        "flags": "flags",
        "machine": "measured on",
    }
    places = ("kernel", "pattern", "dataset", "panel", "heads")
    texts = (*places, "status", "reason", "backend", "flags", "machine")
    return [
        alt.Tooltip(name, type="nominal" if name in texts else "quantitative", title=title)
        for name, title in said.items()
        if name in present
    ]
