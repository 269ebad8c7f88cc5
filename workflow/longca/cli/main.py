"""Entry point of the `longca` command."""

import os
import sys

import typer

from longca.cli import (
    advise,
    archive,
    ceilings,
    compare,
    data,
    kernels,
    masks,
    measure,
    pages,
    project,
    reference,
    reporting,
    show,
    study,
)
from longca.errors import LongcaError

app = typer.Typer(
    name="longca",
    help="Measure long-context attention: from document lengths to the tables and figures of a paper.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for stage in (
    data,
    masks,
    kernels,
    measure,
    reference,
    study,
    reporting,
    pages,
    archive,
    compare,
    show,
    project,
    advise,
    ceilings,
):
    stage.register(app)


def main() -> None:
    """Run the command; a mistake of the user, or a file that cannot be read or written, is one line and exit code 2."""
    try:
        app()
    except LongcaError as error:
        _fail(str(error))
    except BrokenPipeError:  # whoever read our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except MemoryError as error:
        _fail(f"not enough memory: {str(error) or 'this machine has too little'}; right: a smaller size")
    except OSError as error:
        _fail(f"{error.filename or 'a file'}: {error.strerror or error}")


def _fail(message: str) -> None:
    print(f"longca: error: {message}", file=sys.stderr)
    sys.exit(2)
