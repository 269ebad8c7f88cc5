"""Every figure, and the command that draws it again."""

import json
import shlex
from dataclasses import dataclass
from typing import Any

from longca.errors import LongcaError
from longca.reporting.figures.drawing import packed
from longca.reporting.figures.theme import DARK
from longca.reporting.kinds import FigureKind
from longca.reporting.names import figure_file, figures_of
from longca.reporting.parts.part import ReportData


@dataclass(frozen=True)
class Figure:
    """A figure of the report: its Vega-Lite specification and the command that draws it again."""

    name: str
    title: str
    spec: dict[str, Any]
    command: str


def figures(data: ReportData) -> dict[str, Any]:
    """The figures of the study. Raises LongcaError naming a figure that is not there or no JSON."""
    drawn = [_figure(data, kind) for kind in figures_of(data.study)]
    contents = [(f"figure-{figure.name}", figure.title) for figure in drawn]
    return {"figures": drawn, "dark": DARK, "contents": contents}


def _figure(data: ReportData, kind: FigureKind) -> Figure:
    file = figure_file(data.study, kind.name, "json")
    try:
        spec = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise LongcaError(
            f"{file}: is not there; right: draw it with `longca figures {kind.name}`"
        ) from error
    except ValueError as error:
        raise LongcaError(f"{file}: is no JSON: {error}") from error
    target = figure_file(data.study, kind.name, "html")
    # The target stands first: --configfile takes every word after it.
    command = shlex.join(
        ["snakemake", str(target), "--profile", "profiles/local", "--configfile", str(data.config)]
    )
    return Figure(kind.name, kind.title, packed(spec), command)
