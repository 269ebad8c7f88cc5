"""The report: one HTML file that opens offline, made of the parts of the registry."""

from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from longca.files import write_atomically
from longca.reporting.figures.drawing import templates
from longca.reporting.figures.javascript import kept_javascript
from longca.reporting.figures.theme import STATUS_COLOURS
from longca.reporting.long import read_rows
from longca.reporting.names import results_of, table_file, table_names
from longca.reporting.parts.part import Part, ReportData
from longca.reporting.parts.registry import PARTS
from longca.reporting.parts.statuses import statuses
from longca.reporting.words import words
from longca.study.model import Study


def write_report(study: Study, config: Path) -> Path:
    """Write results/<study>/report.html from the study's tables and figures; returns its path.

    `config` is the study's file, named in the commands that draw the figures again. Raises LongcaError naming
    a table, figure or job account that is not there or not whole.
    """
    rows = {name: read_rows(table_file(study, name, "parquet")) for name in table_names(study)}
    data = ReportData(study, config, rows)
    environment = templates()
    environment.globals["words"] = words
    page = environment.get_template("report.html.j2").render(
        study=study,
        statuses=statuses(data),
        colours=STATUS_COLOURS,
        parts=[shown for part in PARTS if (shown := _shown(part, data, environment))],
        vega=kept_javascript(results_of(study).parent),
    )
    target = results_of(study) / "report.html"
    write_atomically(target, page)
    return target


def _shown(part: Part, data: ReportData, environment: jinja2.Environment) -> dict[str, Any] | None:
    """A part as the page takes it: its template has escaped every value, so that its body is HTML."""
    values = part.values(data)
    if values is None:
        return None
    body = Markup(environment.get_template(f"parts/{part.id}.html.j2").render(values))
    return {"id": part.id, "heading": part.heading, "contents": values.get("contents", ()), "body": body}
