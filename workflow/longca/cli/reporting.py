"""Commands of the reporting stage."""

from pathlib import Path
from typing import Annotated

import typer

StudyFile = Annotated[Path, typer.Option("--study", help="The study's config file.")]


def register(app: typer.Typer) -> None:
    """Add this stage's commands to the application."""

    @app.command()
    def tables(
        name: Annotated[
            str,
            typer.Argument(
                help="A table of the study: dense, sparse, context_parallel, support, verification ..."
            ),
        ],
        study: StudyFile,
        partial: Annotated[
            bool, typer.Option("--partial", help="Say `not measured` where a record is missing.")
        ] = False,
    ) -> None:
        """Write one table of a study as CSV, Parquet, Markdown and LaTeX, from its records."""
        from longca.reporting.tables import write_table
        from longca.study.loading import read_study

        write_table(read_study(study), name, partial)

    @app.command()
    def figures(
        name: Annotated[
            str, typer.Argument(help="A figure of the study, as dense_throughput_over_length or masks.")
        ],
        study: StudyFile,
    ) -> None:
        """Write one figure of a study as HTML, SVG, PDF and Vega-Lite JSON, from its tables and masks."""
        from longca.reporting.figures.drawing import write_figure
        from longca.study.loading import read_study

        write_figure(read_study(study), name)

    @app.command()
    def report(study: StudyFile) -> None:
        """Write a study's report, one HTML file that opens offline, from its tables and figures."""
        from longca.reporting.report import write_report
        from longca.study.loading import read_study

        typer.echo(write_report(read_study(study), study))

    @app.command()
    def findings(study: StudyFile) -> None:
        """Print what a study found as Markdown, computed from its records."""
        from longca.reporting.findings_page import findings_page
        from longca.study.loading import read_study

        typer.echo(findings_page(read_study(study), study), nl=False)
