"""Drawing a study's figure by its name, and writing it in every format."""

import json
from typing import Any

import altair as alt
import jinja2
import vl_convert

from longca.errors import LongcaError
from longca.files import write_atomically
from longca.names import unknown_name
from longca.reporting.cells import cells_of
from longca.reporting.figures.bars import over_patterns
from longca.reporting.figures.lines import over_density, over_length, peak_memory
from longca.reporting.figures.masks import masks
from longca.reporting.figures.support import support_map
from longca.reporting.figures.theme import DARK
from longca.reporting.long import read_rows
from longca.reporting.names import figure_file, figure_names, table_file
from longca.study.model import Study

TITLES = {
    "dense_throughput_over_length": "Dense attention: throughput over length",
    "dense_throughput_over_patterns": "Dense attention: throughput over patterns",
    "support": "What each kernel did on each pattern",
    "peak_memory": "Dense attention: peak memory over length",
    "masks": "The masks of this study",
    "sparse_throughput_over_density": "Block-sparse attention: throughput over density",
}
_CELL_FIGURES = {
    "dense_throughput_over_length": over_length,
    "dense_throughput_over_patterns": over_patterns,
    "peak_memory": peak_memory,
    "sparse_throughput_over_density": over_density,
}


def write_figure(study: Study, name: str) -> None:
    """Write a figure of `figure_names(study)` in all its formats, from the study's tables and mask files.

    The same tables and masks give the same bytes of JSON. Raises LongcaError for an unknown name and for a
    table or mask file that is not there or not whole.
    """
    if name not in figure_names(study):
        raise LongcaError(unknown_name(name, figure_names(study), f"figure of study {study.study}"))
    spec = draw(study, name)
    text = json.dumps(spec, sort_keys=True, allow_nan=False)
    write_atomically(figure_file(study, name, "json"), text + "\n")
    write_atomically(figure_file(study, name, "svg"), vl_convert.vegalite_to_svg(text))
    write_atomically(figure_file(study, name, "pdf"), vl_convert.vegalite_to_pdf(text))
    write_atomically(figure_file(study, name, "html"), _page(name, spec))


def draw(study: Study, name: str) -> dict[str, Any]:
    """The Vega-Lite specification of a figure."""
    if name == "masks":
        chart = masks(study, TITLES[name])
    elif name == "support":
        chart = support_map(read_rows(table_file(study, name, "parquet")), TITLES[name])
    else:
        family = "sparse" if name.startswith("sparse_") else "dense"
        cells = cells_of(read_rows(table_file(study, family, "parquet")))
        chart = _CELL_FIGURES[name](cells, TITLES[name])
    # The data stand in the figure itself, however many they are: it opens offline and alone.
    with alt.data_transformers.enable("default", max_rows=None):
        return chart.to_dict()


def templates() -> jinja2.Environment:
    """The HTML templates: every value is escaped, data go in through `tojson`, which no text can leave."""
    return jinja2.Environment(
        loader=jinja2.PackageLoader("longca.reporting", "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def vega_javascript() -> str:
    """Vega, Vega-Lite and Vega-Embed in one script, out of the package: nothing is fetched."""
    return vl_convert.javascript_bundle()  # type: ignore[call-arg]  # its stub lacks the default


def _page(name: str, spec: dict[str, Any]) -> str:
    page = templates().get_template("figure.html.j2")
    return page.render(name=name, title=TITLES[name], spec=spec, dark=DARK, vega=vega_javascript())
