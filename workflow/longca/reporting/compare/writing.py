"""Writing a comparison into a folder: table and figure, in the forms that a study's have."""

import json
from collections.abc import Sequence
from pathlib import Path

import vl_convert

from longca.files import write_atomically
from longca.reporting.compare.cells import Cell
from longca.reporting.compare.figure import TITLE, figure_text
from longca.reporting.compare.sides import Side
from longca.reporting.compare.tables import csv_text, sections
from longca.reporting.figures.drawing import templates
from longca.reporting.figures.javascript import vega_javascript
from longca.reporting.figures.theme import DARK
from longca.reporting.markdown import markdown


def write_comparison(folder: Path, a: Side, b: Side, cells: Sequence[Cell]) -> None:
    """Write comparison.{csv,md}, and comparison.{html,svg,pdf,json} where any cell has a ratio."""
    write_atomically(folder / "comparison.csv", csv_text(cells))
    write_atomically(folder / "comparison.md", markdown(sections(a, b, cells)))
    if not any(cell.interval for cell in cells):
        return
    text = figure_text(a, b, cells)
    write_atomically(folder / "comparison.json", text)
    write_atomically(folder / "comparison.svg", vl_convert.vegalite_to_svg(text))
    write_atomically(folder / "comparison.pdf", vl_convert.vegalite_to_pdf(text))
    page = templates().get_template("figure.html.j2")
    content = page.render(title=TITLE, spec=json.loads(text), dark=DARK, vega=vega_javascript())
    write_atomically(folder / "comparison.html", content)
