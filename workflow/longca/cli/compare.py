"""The command that holds two studies beside each other."""

from pathlib import Path
from typing import Annotated

import typer

_WHAT = "archive (.zip), folder results/STUDY, or a study's config (.yaml)"
# So many cells a terminal has room for; of more, the slowest and the fastest.
_ROOM = 40


def register(app: typer.Typer) -> None:
    """Add this stage's commands to the application."""
    app.command()(compare)


def compare(
    a: Annotated[Path, typer.Argument(metavar="A", help=f"What B is held against: {_WHAT}.")],
    b: Annotated[Path, typer.Argument(metavar="B", help="The other, likewise.")],
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write comparison.{csv,md,html,svg,pdf,json} here.")
    ] = None,
    fail_above: Annotated[
        float | None,
        typer.Option(
            min=0,
            metavar="PERCENT",
            help="Exit code 1 where B is slower by more, or lost a number that A has.",
        ),
    ] = None,
) -> None:
    """Compare the cells that two studies share: ratios of latency with confidence intervals, B over A."""
    from longca.reporting.compare.cells import fallen_behind, paired
    from longca.reporting.compare.sides import read_side
    from longca.reporting.compare.tables import sections, sentences
    from longca.reporting.compare.writing import write_comparison
    from longca.reporting.terminal import print_sections

    sides = read_side(a), read_side(b)
    cells = paired(*sides)
    print_sections(sections(*sides, cells, room=_ROOM))
    if out is not None:
        write_comparison(out, *sides, cells)
        typer.echo(f"\nwritten to {out}")
    if fail_above is None:
        return
    behind = sentences(fallen_behind(cells, fail_above))
    for sentence in behind:
        typer.echo(f"longca: {sentence}", err=True)
    if behind:
        raise typer.Exit(1)
