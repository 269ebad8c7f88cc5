"""Commands about archives: make one of a study, check one from itself alone."""

from pathlib import Path
from typing import Annotated

import typer

from longca.cli.reporting import StudyFile


def register(app: typer.Typer) -> None:
    """Add this stage's commands to the application."""
    commands = typer.Typer(help="Make a study's archive, or check one.", no_args_is_help=True)
    commands.command()(make)
    commands.command()(check)
    app.add_typer(commands, name="archive")


def make(study: StudyFile) -> None:
    """Write results/STUDY/archive.zip of a finished study: the same bytes each time."""
    from longca.reporting.archive.making import make_archive
    from longca.study.loading import read_study

    typer.echo(make_archive(read_study(study), study))


def check(file: Annotated[Path, typer.Argument(help="The archive.")]) -> None:
    """Check an archive from itself alone: digests, masks, tables and figures; exit code 1 where any does not hold."""
    from longca.reporting.archive.checking import check_archive

    problems = check_archive(file)
    for problem in problems:
        typer.echo(f"longca: {problem}", err=True)
    if problems:
        raise typer.Exit(1)
    typer.echo(f"{file}: holds: every file has its digest; tables and figures are what the records give")
