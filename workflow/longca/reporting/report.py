"""The report: one HTML file that opens offline, made from a study's tables, figures and job accounts."""

import json
import shlex
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from longca.errors import LongcaError
from longca.files import write_atomically
from longca.reporting.cells import cells_of
from longca.reporting.figures.drawing import TITLES, templates, vega_javascript
from longca.reporting.figures.theme import DARK, STATUS_COLOURS
from longca.reporting.findings import Finding, fastest, refusals
from longca.reporting.long import Row, read_rows
from longca.reporting.names import families, figure_file, figure_names, results_of, table_file, table_names
from longca.reporting.overhead import overhead, read_jobs
from longca.reporting.provenance import fingerprints, machines
from longca.reporting.sections import Section
from longca.reporting.tables import sections_of
from longca.reporting.words import SEVERITY, words
from longca.study.model import Study


@dataclass(frozen=True)
class Figure:
    """A figure of the report: its Vega-Lite specification and the command that draws it again."""

    name: str
    title: str
    spec: dict[str, Any]
    command: str


def write_report(study: Study, config: Path) -> Path:
    """Write results/<study>/report.html from the study's tables and figures; returns its path.

    `config` is the study's file, named in the commands that draw the figures again. Raises LongcaError naming
    a table, figure or job account that is not there or not whole.
    """
    rows = {name: read_rows(table_file(study, name, "parquet")) for name in table_names(study)}
    measured = [row for family in families(study) for row in rows[family]]
    page = (
        templates()
        .get_template("report.html.j2")
        .render(
            study=study,
            asked=_asked(study),
            machines=machines(measured),
            statuses=_statuses(measured),
            colours=STATUS_COLOURS,
            findings=_findings(study, rows),
            figures=[_figure(study, name, config) for name in figure_names(study)],
            tables=_tables(rows),
            overhead=overhead(read_jobs(study)),
            fingerprints=fingerprints(measured),
            words=words,
            dark=DARK,
            vega=vega_javascript(),
        )
    )
    target = results_of(study) / "report.html"
    write_atomically(target, page)
    return target


def _asked(study: Study) -> dict[str, str]:
    """The study's config part by part, as YAML with every default spelt out."""
    parts = study.model_dump(mode="json", exclude_none=True)
    return {
        words(name): yaml.safe_dump(value, sort_keys=False, default_flow_style=None, width=88)
        .strip()
        .removesuffix("\n...")
        for name, value in parts.items()
        if name != "study" and value != {}
    }


def _statuses(rows: list[Row]) -> dict[str, Any]:
    """How many cases of each family and kernel came to each status, and the total."""
    kernels: dict[tuple[str, str], Counter[str]] = {}
    for row in rows:
        kernels.setdefault((row["family"], row["kernel"]), Counter())[row["status"]] += 1
    total = sum(kernels.values(), Counter())
    seen = [status for status in reversed(SEVERITY) if total[status]]
    return {"seen": seen, "kernels": kernels, "total": total, "cases": len(rows)}


def _findings(study: Study, rows: dict[str, list[Row]]) -> list[Finding]:
    found = []
    for family in families(study):
        cells = cells_of(rows[family])
        found += [*fastest(cells), refusals(cells)]
    return [finding for finding in found if finding.sentences]


def _figure(study: Study, name: str, config: Path) -> Figure:
    file = figure_file(study, name, "json")
    try:
        spec = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise LongcaError(f"{file}: is not there; right: draw it with `longca figures {name}`") from error
    except ValueError as error:
        raise LongcaError(f"{file}: is no JSON: {error}") from error
    target = figure_file(study, name, "html")
    # The target stands first: --configfile takes every word after it.
    command = shlex.join(
        ["snakemake", str(target), "--profile", "profiles/local", "--configfile", str(config)]
    )
    return Figure(name, TITLES[name], spec, command)


def _tables(rows: dict[str, list[Row]]) -> dict[str, list[Section]]:
    return {name: sections_of(name, found) for name, found in rows.items()}
