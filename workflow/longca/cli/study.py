"""Commands about a study's config: what it may say, and what it will take."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from collections.abc import Callable

    from longca.cases import Case
    from longca.study.model import Study


def register(app: typer.Typer) -> None:
    """Add this stage's commands to the application."""
    app.command()(schema)
    app.command()(plan)


def schema(
    form: Annotated[
        Literal["json", "markdown"], typer.Option("--format", help="A JSON schema, or a table of keys.")
    ] = "json",
) -> None:
    """Print what a study's config file may say."""
    import json

    from longca.study.reference import key_table, study_schema

    typer.echo(key_table() if form == "markdown" else json.dumps(study_schema(), indent=2), nl=form == "json")


def plan(study: Annotated[Path, typer.Option(help="Config file of the study.")]) -> None:
    """Count a study's cases and predict the hours they take."""
    from longca.cases import study_series
    from longca.measure.device import choose_device
    from longca.reporting.sections import Section
    from longca.reporting.terminal import print_sections
    from longca.study.loading import read_study
    from longca.study.plan import ASSUMED, plan_rows

    read = read_study(study)
    device = choose_device(read.measure.device).type
    rows = list(
        plan_rows(
            study_series(read), read.measure, ASSUMED[device], _refusal(device), _measured_latencies(read)
        )
    )
    counts = ("series", "cases", "unsupported", "measured before", "hours", "longest job (min)")
    lines: list[tuple[str, ...]] = []
    for row in rows:
        counted = (row.series, row.cases, row.refused, row.measured)
        times = (f"{row.hours:.2f}", f"{row.longest_minutes:.1f}")
        lines.append((row.family, row.kernel, *map(str, counted), *times))
    total = (sum(getattr(row, name) for row in rows) for name in ("series", "cases", "refused", "measured"))
    hours, longest = sum(row.hours for row in rows), max(row.longest_minutes for row in rows)
    lines.append(("all", "kernels", *map(str, total), f"{hours:.2f}", f"{longest:.1f}"))
    assumed = ASSUMED[device]
    note = (
        f"Assumed where nothing was measured: {assumed.tflops:g} TFLOP/s over every cell (block-sparse: the"
        f" share kept). Assumed for all: {assumed.case_s:g} s a case, {assumed.series_s:g} s a job."
    )
    title = f"study {read.study} on {device}"
    print_sections([Section(title, ("family", "kernel", *counts), tuple(lines), note=note)])


def _refusal(device: str) -> "Callable[[Case], bool]":
    """Whether a kernel's declaration refuses a case on this device."""
    from longca.kernels.registry import load_kernel

    def is_refused(case: "Case") -> bool:
        return load_kernel(case.family, case.kernel).support.reason_against(case, device) is not None

    return is_refused


def _measured_latencies(study: "Study") -> dict["Case", float]:
    """Median latencies (ms) of the study's own record files, by case."""
    from longca.measure.record import read_records

    folder = Path("results") / study.study / "records"
    records = [record for file in sorted(folder.rglob("*.jsonl")) for record in read_records(file)]
    return {record.case: record.latency_ms.p50 for record in records if record.latency_ms}
