"""The command that writes the derived pages of docs/."""

from pathlib import Path

import typer


def register(app: typer.Typer) -> None:
    """Add the command to the application."""

    @app.command()
    def pages() -> None:
        """Write docs/kernels and docs/mechanisms, from the declarations and the tables of results/h200."""
        from longca.reporting.pages.writing import write_pages

        write_pages(Path("docs"), Path("results/h200"))
