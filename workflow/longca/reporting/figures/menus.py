"""Menus: where a grid has more panels than a reader can look over, a figure shows one of a setting's choices at a time.

On its page the others are chosen from a menu; on paper stands the choice it opens with, and says so.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

# Panels that a page of paper has room for: four beside each other, six below.
MOST_PANELS = 24
_SAID = {
    "seqlen": "length",
    "heads": "heads",
    "head_dim": "head dimension",
    "dtype": "dtype",
    "device": "device",
    "local_kernel": "local kernel",
    "cluster": "cluster",
    "tokens": "tokens a GPU",
}
_UNITS = {"seqlen": " tokens"}
_SHOWN = "shown_"


@dataclass(frozen=True)
class Menu:
    """A field of a figure's rows of which one choice is shown at a time; `first` is the one it opens with."""

    field: str
    choices: tuple[Any, ...]
    first: Any


def chosen_settings(settings: Sequence[Mapping[str, Any]], others: Sequence[Hashable]) -> list[str]:
    """The settings to choose from a menu, as few as need be: the one with the most choices first.

    A row of a figure has a choice of each of `settings`, each with a panel of its own, and what else tells its panel
    from others.
    """
    choices = {name: len({row[name] for row in settings}) for name in settings[0]}
    left = sorted((name for name in choices if choices[name] > 1), key=lambda name: -choices[name])
    chosen: list[str] = []
    while left and len(
        {(other, *(row[n] for n in left)) for row, other in zip(settings, others, strict=True)}
    ) > (MOST_PANELS):
        chosen.append(left.pop(0))
    return chosen


def menus_of(values: Sequence[dict[str, Any]], fields: Sequence[str], number: str) -> list[Menu]:
    """The menus of these fields of the rows. Each opens with the choice that has `number` in most rows.

    Of lengths that have it in as many, with the longest; else with the first in the grid.
    """
    return [_menu(values, field, number) for field in fields]


def with_menus(chart: alt.FacetChart, menus: Sequence[Menu]) -> alt.FacetChart:
    """The chart, which has a parameter already, with only the rows that its menus choose."""
    for menu in menus:
        options, name = list(menu.choices), f"{_SHOWN}{menu.field}"
        labels = [f"{choice}{_UNITS.get(menu.field, '')}" for choice in options]
        select = alt.binding_select(options=options, labels=labels, name=_SAID[menu.field])
        chart = chart.transform_filter(f"datum.{menu.field} == {name}")
        params: Any = chart.params
        chart.params = [*params, alt.VariableParameter(name=name, value=menu.first, bind=select)]
    return chart


def without_menus(spec: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """A specification that shows for good what its menus open with, and what that is in words; empty without menus."""
    menus = [param for param in spec.get("params", ()) if param["name"].startswith(_SHOWN)]
    if not menus:
        return spec, ""
    first = {menu["name"].removeprefix(_SHOWN): menu["value"] for menu in menus}
    datasets = {
        name: [row for row in rows if all(row[field] == value for field, value in first.items())]
        for name, rows in spec["datasets"].items()
    }
    still = {name: part for name, part in spec.items() if name != "transform"} | {"datasets": datasets}
    return still, ", ".join(map(_in_words, menus))


def _menu(values: Sequence[dict[str, Any]], field: str, number: str) -> Menu:
    counts: dict[Any, int] = {}
    for row in values:
        counts[row[field]] = counts.get(row[field], 0) + (number in row)
    order = sorted(counts, reverse=True) if field == "seqlen" else list(counts)
    return Menu(field, tuple(counts), max(order, key=lambda choice: counts[choice]))


def _in_words(menu: dict[str, Any]) -> str:
    bind = menu["bind"]
    label = bind["labels"][bind["options"].index(menu["value"])]
    return f"{bind['name']} {label} (one of {len(bind['options'])})"
