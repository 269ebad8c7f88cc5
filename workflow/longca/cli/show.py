"""The command that shows what was measured of one series."""

from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add this stage's commands to the application."""
    app.command()(show)


def show(
    series: Annotated[
        str,
        typer.Argument(
            metavar="SERIES", help="Its name, as dense/auto/sdpa/causal/4-2, or a record file or journal."
        ),
    ],
) -> None:
    """Show a series' records as a table, of a running one what its journal holds so far."""
    from longca.reporting.series_file import find_series, series_section
    from longca.reporting.terminal import print_sections

    print_sections([series_section(find_series(series))])
