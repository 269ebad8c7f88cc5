"""The command that says what to take."""

from pathlib import Path
from typing import Annotated

import typer

from longca.cli.options import Seqlen, refuse_given
from longca.errors import LongcaError


def register(app: typer.Typer) -> None:
    """Add this stage's commands to the application."""
    app.command()(advise)


def advise(
    pattern: Annotated[str, typer.Option(help="Mask pattern, as causal_document.")],
    seqlen: Seqlen,
    study: Annotated[
        Path, typer.Option(help="What was measured: a folder results/STUDY, an archive or a config.")
    ],
    heads: Annotated[str, typer.Option(help="Query heads - key-value heads.")] = "64-8",
    pass_: Annotated[str, typer.Option("--pass", help="forward, backward or both.")] = "both",
    gpus: Annotated[
        int | None, typer.Option(min=2, help="Rank mechanisms over so many GPUs as well.")
    ] = None,
    gpus_per_node: Annotated[
        int | None, typer.Option(min=1, help="With --gpus: GPUs of one host; 8 by default.")
    ] = None,
) -> None:
    """Rank the kernels, and over several GPUs the mechanisms, for a mask, length and heads."""
    from longca.names import unknown_name
    from longca.reporting.advice.advising import answers
    from longca.reporting.advice.question import PASSES, Question
    from longca.reporting.advice.sections import advice_section
    from longca.reporting.collect import CaseRecord
    from longca.reporting.compare.sides import read_side
    from longca.reporting.long import long_row
    from longca.reporting.names import results_of
    from longca.reporting.terminal import print_sections
    from longca.study.loading import read_study
    from longca.study.masks import study_masks
    from longca.units import parse_heads

    if gpus is None:
        refuse_given({"--gpus-per-node": gpus_per_node}, "is of several GPUs; right: with --gpus")
    if pass_ not in PASSES:
        raise LongcaError(f"--pass: {unknown_name(pass_, PASSES, 'pass')}")
    try:
        question = Question(pattern, seqlen, parse_heads(heads), pass_, gpus, gpus_per_node or 8)
    except ValueError as error:
        raise LongcaError(f"--heads: {error}") from None
    side = read_side(study)
    rows = [long_row(CaseRecord(case, study, record)) for case, record in side.records.items()]
    draw = None
    if study.suffix in (".yaml", ".yml"):
        read = read_study(study)
        draw = study_masks(read, results_of(read)).draw
    found = answers(question, rows, str(study), draw)
    print_sections(advice_section(question, answer) for answer in found)
