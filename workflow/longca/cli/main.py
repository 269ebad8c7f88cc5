"""Entry point of the `longca` command."""

import sys

import typer

from longca.cli import data, kernels, masks, measure, reporting, study
from longca.errors import LongcaError

app = typer.Typer(
    name="longca",
    help="Measure long-context attention: from document lengths to the tables and figures of a paper.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for stage in (data, masks, kernels, measure, study, reporting):
    stage.register(app)


def main() -> None:
    """Run the command; a LongcaError is one line on stderr and exit code 2."""
    try:
        app()
    except LongcaError as error:
        print(f"longca: error: {error}", file=sys.stderr)
        sys.exit(2)
