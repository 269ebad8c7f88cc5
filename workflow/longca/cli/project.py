"""The command that asks the cost model: which mechanism, on how many GPUs of which cluster."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from longca.errors import LongcaError

_Value = TypeVar("_Value")


def register(app: typer.Typer) -> None:
    """Add this stage's commands to the application."""
    app.command()(project)


def project(
    study: Annotated[
        Path, typer.Option(help="Config file of a study whose context parallelism was measured.")
    ],
    pattern: Annotated[str, typer.Option(help="Mask pattern, one that the study measured on ranks.")],
    gpus: Annotated[int, typer.Option(min=2, help="GPUs.")],
    cluster: Annotated[str, typer.Option(help="Cluster of workflow/resources/clusters.yaml.")] = "h200_400g",
    tokens: Annotated[str, typer.Option(help="Tokens a GPU, as 8k.")] = "8k",
    heads: Annotated[str, typer.Option(help="Query-kv heads, as 64-8.")] = "64-8",
    kernel: Annotated[str, typer.Option(help="Local kernel.")] = "segments",
) -> None:
    """Rank mechanisms on a cluster, each pass on its best topology, as modelled from what a study measured."""
    from longca.parallel.clusters import find_cluster
    from longca.reporting.collect import collect
    from longca.reporting.long import long_row
    from longca.reporting.names import results_of
    from longca.reporting.scale.asked import Asked, projected_section
    from longca.reporting.terminal import print_sections
    from longca.study.loading import read_study
    from longca.study.masks import study_masks
    from longca.units import parse_heads, parse_tokens

    asked = Asked(
        pattern,
        kernel,
        _read("--heads", parse_heads, heads),
        _read("--tokens", parse_tokens, tokens),
        _read("--cluster", find_cluster, cluster),
        gpus,
    )
    read = read_study(study)
    rows = [long_row(item) for item in collect(read, "context_parallel", partial=True)]
    draw = study_masks(read, results_of(read)).draw
    print_sections([projected_section(asked, rows, draw, str(study))])


def _read(option: str, read: Callable[[str], _Value], text: str) -> _Value:
    """An option's value. Raises LongcaError with its name where it has none."""
    try:
        return read(text)
    except (ValueError, LongcaError) as error:
        raise LongcaError(f"{option}: {error}") from None
