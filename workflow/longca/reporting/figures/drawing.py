"""Drawing a study's figure by its name, and writing it in every format."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import altair as alt
import jinja2

from longca.errors import LongcaError
from longca.files import write_atomically
from longca.measure.ceilings import read_ceilings
from longca.names import unknown_name
from longca.reporting.figures.bars import over_patterns
from longca.reporting.figures.density import (
    memory_over_density,
    speedup_over_density,
    throughput_over_density,
)
from longca.reporting.figures.javascript import kept_javascript
from longca.reporting.figures.lines import over_length, peak_memory
from longca.reporting.figures.masks import masks
from longca.reporting.figures.print_form import WIDTHS_PT, printed
from longca.reporting.figures.projection import projection
from longca.reporting.figures.roofline import roofline
from longca.reporting.figures.scaling import scaling
from longca.reporting.figures.spread import sample_spread
from longca.reporting.figures.support import support_map
from longca.reporting.figures.theme import DARK
from longca.reporting.kinds import FigureKind
from longca.reporting.long import Row, read_rows
from longca.reporting.names import figure_file, figures_of, results_of, table_file
from longca.study.model import Study

# What draws each figure of FIGURES from the rows of its table. The masks are drawn from the study's mask files, the
# roofline from its ceilings too.
DRAWN_BY: dict[str, Callable[[Sequence[Row], str], alt.TopLevelMixin]] = {
    "dense_throughput_over_length": over_length,
    "dense_throughput_over_patterns": over_patterns,
    "sample_spread": sample_spread,
    "support": support_map,
    "peak_memory": peak_memory,
    "sparse_throughput_over_density": throughput_over_density,
    "sparse_speedup_over_density": speedup_over_density,
    "sparse_peak_memory": memory_over_density,
    "context_parallel_scaling": scaling,
    "projection": projection,
}


def write_figure(study: Study, name: str) -> None:
    """Write a figure of `figure_names(study)` in all its formats, from the study's tables and mask files.

    The same tables and masks give the same bytes of JSON. Raises LongcaError for an unknown name and for a
    table or mask file that is not there or not whole.
    """
    text = figure_text(study, name)
    write_atomically(figure_file(study, name, "json"), text)
    spec = json.loads(text)
    write_atomically(figure_file(study, name, "html"), _page(study, spec))
    for form, width_pt in WIDTHS_PT.items():
        svg, pdf = printed(spec, width_pt)
        write_atomically(figure_file(study, name, f"{form}svg"), svg)
        write_atomically(figure_file(study, name, f"{form}pdf"), pdf)


def figure_text(study: Study, name: str) -> str:
    """What stands in a figure's JSON file: its specification, written the one way."""
    return json.dumps(draw(study, name), sort_keys=True, allow_nan=False, separators=(",", ":")) + "\n"


def draw(study: Study, name: str) -> dict[str, Any]:
    """The Vega-Lite specification of a figure."""
    kind = _kind(study, name)
    rows = read_rows(table_file(study, kind.table, "parquet")) if kind.table else []
    if name == "masks":
        chart = masks(study, kind.title)
    elif name == "roofline":
        chart = roofline(rows, read_ceilings(results_of(study)), kind.title)
    else:
        chart = DRAWN_BY[name](rows, kind.title)
    # The data stand in the figure itself, however many they are: it opens offline and alone.
    with alt.data_transformers.enable("default", max_rows=None):
        return _with_rows(chart.to_dict())


def _with_rows(spec: dict[str, Any]) -> dict[str, Any]:
    """The specification with data that `inline` gave as one text as rows again."""
    rows = {n: json.loads(v) if isinstance(v, str) else v for n, v in spec.get("datasets", {}).items()}
    return spec | {"datasets": rows}


def _kind(study: Study, name: str) -> FigureKind:
    known = {kind.name: kind for kind in figures_of(study)}
    if name not in known:
        raise LongcaError(unknown_name(name, known, f"figure of study {study.study}"))
    return known[name]


def packed(spec: dict[str, Any]) -> dict[str, Any]:
    """A specification whose rows are columns, each text once, as `embed.js` unpacks them: a fifth of the size."""
    return spec | {"datasets": {name: packed_rows(rows) for name, rows in spec["datasets"].items()}}


def packed_rows(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Rows as columns, in the form that `embed.js` unpacks."""
    columns: dict[str, Any] = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        values = [row.get(name) for row in rows]
        if any(isinstance(value, str) for value in values):
            places = {
                text: place for place, text in enumerate(dict.fromkeys(v for v in values if v is not None))
            }
            columns[name] = {
                "words": list(places),
                "values": [None if v is None else places[v] for v in values],
            }
        else:
            columns[name] = {"values": values}
    return {"length": len(rows), "columns": columns}


def templates() -> jinja2.Environment:
    """The HTML templates: every value is escaped, data go in through `tojson`, which no text can leave."""
    return jinja2.Environment(
        loader=jinja2.PackageLoader("longca.reporting", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _page(study: Study, spec: dict[str, Any]) -> str:
    page = templates().get_template("figure.html.j2")
    vega = kept_javascript(results_of(study).parent)
    return page.render(title=spec["title"]["text"], spec=packed(spec), dark=DARK, vega=vega)
