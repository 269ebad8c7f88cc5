"""A figure as paper has it: at a width of its own, in the sizes of print, nothing in it that waits for a pointer."""

import json
import math
import re
from typing import Any

import vl_convert

from longca.reporting.figures.menus import without_menus

# Widths in points: the text of a one-column page (6.5 in), and one column of a two-column page (3.33 in).
WIDTHS_PT = {"": 468, "column.": 240}

# A pixel of the screen's figure is half a point on paper; texts are set larger, to stay readable there.
_POINTS_PER_PIXEL = 0.5
_TEXT_SCALE = 14 / 11
# Room a row of panels needs beside them, and each panel beside the next; a legend's entry beside and for its letters.
_AXIS_PX, _GAP_PX = 70, 24
_SYMBOL_PX, _LETTER_PX = 32, 7
_SIZE = re.compile(r'width="([0-9.]+)" height="([0-9.]+)"')
# A hundredth of a pixel of the screen's figure is 0.0018 mm on paper, of an opacity nothing one sees. Numbers that are
# said, as text, stay as they are.
_TAG, _LONG_NUMBER = re.compile(r"<[^>]*>"), re.compile(r"\d+\.\d{3,}")
_WAITS_FOR_A_POINTER = ("tooltip", "params", "aria")


def printed(spec: dict[str, Any], width_pt: float) -> tuple[str, bytes]:
    """The figure as SVG and as PDF, `width_pt` points wide.

    The title is left out: a paper has its caption. What the figure is of stays, above it. Of what a menu chooses
    from, the choice it opens with is shown, and said there.
    """
    shown, choices = without_menus(spec)
    still = _still(shown)
    still["title"] = _settings_lines(spec, choices)
    still["config"] = _larger(still["config"]) | {"aria": False}
    _fit(still, width_pt / _POINTS_PER_PIXEL)
    drawn = _TAG.sub(_in_hundredths, vl_convert.vegalite_to_svg(json.dumps(still)))
    width, height = map(float, _SIZE.search(drawn).groups())  # type: ignore[union-attr]
    tall_pt = height * width_pt / width
    # The converter to PDF takes a number without a unit for points; a viewer of SVG would take it for pixels.
    return _sized(drawn, width_pt, tall_pt, "pt"), vl_convert.svg_to_pdf(_sized(drawn, width_pt, tall_pt, ""))


def _still(spec: dict[str, Any]) -> dict[str, Any]:
    """A specification without what only a pointer brings out, and of its rows what is still named then."""
    bare = _without_pointer({name: part for name, part in spec.items() if name != "datasets"})
    named = set(re.findall(r"\w+", json.dumps(bare)))
    kept = {
        data: [{name: value for name, value in row.items() if name in named} for row in rows]
        for data, rows in spec["datasets"].items()
    }
    return bare | {"datasets": kept}


def _without_pointer(part: Any) -> Any:
    if isinstance(part, list):
        return [_without_pointer(item) for item in part]
    if not isinstance(part, dict):
        return part
    return {
        name: _without_pointer(value)
        for name, value in part.items()
        if name not in _WAITS_FOR_A_POINTER and not _is_pick(value)
    }


def _is_pick(encoding: Any) -> bool:
    """Whether a channel is set by what is picked in the legend."""
    return isinstance(encoding, dict) and "param" in (encoding.get("condition") or {})


def _settings_lines(spec: dict[str, Any], choices: str) -> dict[str, Any]:
    said = spec["title"].get("subtitle") or [""]
    return {
        "text": [choices, said[0]] if choices else said[0],
        "fontSize": 11 * _TEXT_SCALE,
        "fontWeight": "normal",
        "color": "#555555",
        "offset": 6,
    }


def _larger(config: dict[str, Any]) -> dict[str, Any]:
    sizes = ("labelFontSize", "titleFontSize", "subtitleFontSize", "fontSize")
    return {
        part: {n: v * _TEXT_SCALE if n in sizes else v for n, v in values.items()}
        if isinstance(values, dict)
        else values
        for part, values in config.items()
    }


def _fit(spec: dict[str, Any], width_px: float) -> None:
    """As many panels side by side as there is room for, and wide ones as wide as that room."""
    legend = spec["config"].setdefault("legend", {})
    longest = max(map(len, _coloured(spec)), default=0)
    legend["columns"] = max(1, int(width_px / (_SYMBOL_PX + _LETTER_PX * longest)))
    inner = spec.get("spec", spec)
    width = inner.get("width")
    if not isinstance(width, int | float):
        return
    columns = spec.get("columns", 1)
    while columns > 1 and _AXIS_PX + columns * (width + _GAP_PX) > width_px:
        columns = max(n for n in range(1, columns) if spec["columns"] % n == 0)
    inner["width"] = math.floor((width_px - _AXIS_PX) / columns - _GAP_PX)
    if "columns" in spec:
        spec["columns"] = columns


def _coloured(part: Any) -> set[str]:
    """What a specification gives a colour, by name: its legend's entries."""
    if isinstance(part, list):
        return set().union(*map(_coloured, part))
    if not isinstance(part, dict):
        return set()
    colour = part.get("color")
    scale = (colour.get("scale") if isinstance(colour, dict) else None) or {}
    own = {name for name in scale.get("domain", ()) if isinstance(name, str)}
    return own.union(*map(_coloured, part.values()))


def _in_hundredths(tag: re.Match[str]) -> str:
    return _LONG_NUMBER.sub(lambda number: f"{float(number[0]):.2f}".rstrip("0").rstrip("."), tag[0])


def _sized(svg: str, width: float, height: float, unit: str) -> str:
    """The picture with its width and height set; what it shows is scaled by its view box."""
    return _SIZE.sub(f'width="{width:g}{unit}" height="{height:.2f}{unit}"', svg, count=1)
