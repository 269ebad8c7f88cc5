"""The command that asks the cost model: which mechanism, on how many GPUs of which cluster."""

from pathlib import Path
from typing import Annotated

import typer

from longca.errors import LongcaError


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
    """Rank mechanisms and their topologies on a cluster, as modelled from what a study measured."""
    from rich.console import Console
    from rich.table import Table

    from longca.parallel.clusters import find_cluster
    from longca.reporting.collect import collect
    from longca.reporting.long import long_row
    from longca.reporting.scale.points import ELEMENT_BYTES
    from longca.reporting.scale.projection import Question
    from longca.reporting.scale.projection import project as projected
    from longca.reporting.scale.tables import fitted
    from longca.study.loading import read_study
    from longca.units import parse_heads, parse_tokens

    read = read_study(study)
    rows = [long_row(item) for item in collect(read, "context_parallel", partial=True)]
    found = fitted(rows)
    if found is None:
        raise LongcaError(
            f"{study}: nothing measured on ranks of a known GPU; right: longca measure --study {study}"
        )
    model, points = found
    try:
        q_heads, kv_heads = parse_heads(heads)
        a_rank = parse_tokens(tokens)
    except ValueError as error:
        raise LongcaError(str(error)) from error
    load = points[0].workload
    dataset = next((row["dataset"] for row in rows if row["pattern"] == pattern), "auto")
    shape = (dataset, a_rank, q_heads, kv_heads, load.head_dim, ELEMENT_BYTES[rows[0]["dtype"]])
    table = Table("mechanism", "U x R x windows", title=f"modelled: {pattern}, {gpus} GPUs of {cluster}")
    for column in ("forward TFLOP/s a GPU", "efficiency", "backward TFLOP/s a GPU", "efficiency"):
        table.add_column(column, justify="right")
    here = find_cluster(cluster).with_inside(model.cluster.inside)
    passes = {
        pass_: {
            one.mechanism: one
            for one in projected(model, Question(kernel, pattern, *shape, pass_), here, gpus)
        }
        for pass_ in ("forward", "backward")
    }
    for mechanism, forward in passes["forward"].items():
        cells = [mechanism, _shape(forward.topology) or forward.reason or ""]
        for one in (forward, passes["backward"][mechanism]):
            cells += (
                [f"{one.tflops:.0f}", f"{one.cost.efficiency:.2f}"] if one.tflops and one.cost else ["", ""]
            )
        table.add_row(*cells)
    Console().print(table)


def _shape(topology: object) -> str:
    sizes = [getattr(topology, name, None) for name in ("ulysses", "ring", "windows")]
    return "" if None in sizes else "x".join(map(str, sizes))
