"""Commands for a study that others will refer to: some of it measured twice, all of it frozen."""

from pathlib import Path
from typing import Annotated

import typer

from longca.cli.time_budget import TimeBudget, spending


def register(app: typer.Typer) -> None:
    """Add this stage's commands to the application."""
    app.command()(repeat)
    app.command()(freeze)


def repeat(
    study: Annotated[Path, typer.Option(help="Config file of a study that was measured.")],
    cells: Annotated[int, typer.Option(min=1, help="How many of its ok cells are measured again.")] = 10,
    seed: Annotated[int, typer.Option(min=0, help="Which of them; a seed each for several runs.")] = 0,
    time_budget: TimeBudget = None,
) -> None:
    """Measure some cells of a study a second time: the report says how far two runs are apart."""
    from rich.console import Console

    from longca.measure.freezing import refuse_frozen
    from longca.measure.repeating import repeat_cells
    from longca.study.loading import read_study

    read = read_study(study)
    refuse_frozen(read, study)
    with spending(time_budget) as budget:
        repeat_cells(read, Path("results") / read.study, cells, seed, budget, Console(stderr=True))


def freeze(
    study: Annotated[Path, typer.Option(help="Config file of a study whose series are all measured.")],
    check: Annotated[
        bool, typer.Option("--check", help="Only draw every mask again and compare it with the records.")
    ] = False,
) -> None:
    """Bring a study's records into the form that a repository keeps: `frozen: true` then makes them inputs."""
    from longca.measure.freezing import check_masks, freeze_study
    from longca.study.loading import read_study

    read = read_study(study)
    results = Path("results") / read.study
    if not check:
        freeze_study(read, results)
    typer.echo(f"{check_masks(read, results)} masks are those of the records")
