"""The command that measures what a device can do at most."""

from pathlib import Path
from typing import Annotated

import typer

from longca.errors import LongcaError


def register(app: typer.Typer) -> None:
    """Add this stage's commands to the application."""
    app.command()(ceilings)


def ceilings(
    study: Annotated[Path, typer.Option(help="Config file of the study whose roofline they are for.")],
) -> None:
    """Measure a large matrix product and a copy on the study's device: the ceilings of its roofline."""
    from longca.measure.ceiling_timing import measure_ceilings
    from longca.measure.ceilings import keep_ceilings
    from longca.measure.freezing import refuse_frozen
    from longca.reporting.names import results_of
    from longca.study.loading import read_study

    read = read_study(study)
    refuse_frozen(read, study)
    dtypes = dict.fromkeys(grid.dtype for grid in read.dense)
    if not dtypes:
        raise LongcaError(
            f"{study}: has no dense grid, and the roofline is of dense kernels; right: a study that has"
        )
    for dtype in dtypes:
        measured = measure_ceilings(read.measure.device, dtype)
        file = keep_ceilings(results_of(read), measured)
        typer.echo(
            f"{measured.device}: matrix product {measured.matrix_product_tflops:.1f} TFLOP/s ({dtype}), "
            f"copy {measured.copy_gb_per_s:.0f} GB/s; written to {file}"
        )
