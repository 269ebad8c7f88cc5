"""Commands of the data stage: corpora to document lengths, lengths to packed samples."""

import json
import random
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from longca.errors import LongcaError
from longca.files import write_atomically


def register(app: typer.Typer) -> None:
    """Add this stage's commands to the application."""
    app.command()(lengths)
    app.command()(documents)


def lengths(
    dataset: Annotated[
        str, typer.Argument(help="A published data set, or a name for the corpus that is counted.")
    ],
    study: Annotated[Path | None, typer.Option(help="Study whose datasets section describes it.")] = None,
    layout: Annotated[str | None, typer.Option(help="Keys of the corpus's records, without a study.")] = None,
    files: Annotated[list[str] | None, typer.Option(help="Glob or folder of the corpus; repeatable.")] = None,
    hugging_face: Annotated[str | None, typer.Option(help="Data set of the hub, in place of files.")] = None,
    split: Annotated[str | None, typer.Option(help="Split of the hub's data set.")] = None,
    config: Annotated[str | None, typer.Option(help="Configuration of the hub's data set.")] = None,
    subsets: Annotated[list[str] | None, typer.Option(help="Count this subset only; repeatable.")] = None,
    column: Annotated[str | None, typer.Option(help="What is counted, in place of the layout's.")] = None,
    tokenizer: Annotated[str | None, typer.Option(help="Vocabulary that counts the tokens.")] = None,
    bad_records: Annotated[
        str | None, typer.Option(help="stop at a record that cannot be read, or skip.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Counting processes; all cores by default.")
    ] = None,
    output: Annotated[Path | None, typer.Option(help="Lengths CSV to write.")] = None,
) -> None:
    """Read a data set's document lengths: a published histogram, or a corpus that is counted here."""
    from longca.data.histogram import PUBLISHED, published_histogram, write_histogram

    given = {
        "layout": layout,
        "files": files,
        "hugging_face": hugging_face,
        "split": split,
        "config": config,
        "subsets": subsets,
        "column": column,
        "tokenizer": tokenizer,
        "bad_records": bad_records,
    }
    described = {key: value for key, value in given.items() if value}
    if dataset in PUBLISHED:
        if described:
            raise LongcaError(f"{dataset} is a published data set: give a corpus of your own another name")
        histogram, notes = (
            published_histogram(dataset),
            ["published shares; lengths evenly spread inside a bin, as they are drawn"],
        )
    else:
        histogram, notes = _count(dataset, study, described, workers)
    if output is not None:
        write_histogram(output, histogram)
    _print_summary(dataset, histogram, notes, output)


def _count(
    dataset: str, study: Path | None, described: dict[str, Any], workers: int | None
) -> tuple[Any, list[str]]:
    """The histogram of the corpus that the study or the options describe, and notes on the count."""
    from longca.data.corpus import parse_corpus, read_study_corpus
    from longca.data.histogram import PUBLISHED
    from longca.data.lengths import count_corpus
    from longca.data.workers import available_cores

    if study is not None and described:
        raise LongcaError(f"--study {study} describes the corpus: leave out {', '.join(described)}")
    if study is not None:
        corpus = read_study_corpus(study, dataset)
    elif described:
        corpus = parse_corpus(dataset, described, "command line")
    else:
        raise LongcaError(
            f"{dataset!r} is no published data set ({', '.join(PUBLISHED)}): "
            "give --study FILE with its entry under datasets, or --layout and --files"
        )
    histogram, tally = count_corpus(dataset, corpus, workers or available_cores())
    notes = [
        f"{documents:,} documents counted from {source}"
        for source, documents in sorted(tally.sources.items())
    ]
    if tally.empty:
        notes.append(f"{tally.empty:,} empty documents left out")
    if tally.left_out:
        notes.append(f"{tally.left_out:,} documents of other subsets left out")
    if tally.bad:
        notes.append(f"{tally.bad:,} bad records skipped, the first: {tally.first_bad}")
    return histogram, notes


def _print_summary(dataset: str, histogram: Any, notes: list[str], output: Path | None) -> None:
    from rich.console import Console
    from rich.table import Table

    from longca.data.summary import summarize

    summary = summarize(histogram)
    table = Table(title=dataset, title_justify="left", show_header=False)
    table.add_column(style="bold")
    table.add_column(justify="right")
    for name, value in (
        ("documents", summary.documents),
        ("tokens", summary.tokens),
        ("mean length", summary.mean),
        ("median", summary.median),
        ("90th percentile", summary.p90),
        ("longest", summary.longest),
    ):
        table.add_row(name, "not published" if value is None else f"{value:,.0f}")
    console = Console()
    console.print(table)
    for note in notes:
        console.print(f"- {note}", markup=False, highlight=False, soft_wrap=True)
    if output is not None:
        console.print(f"written to {output}", markup=False, highlight=False, soft_wrap=True)


def documents(
    seqlen: Annotated[int, typer.Option(min=1, help="Tokens of the packed sequence.")],
    dataset: Annotated[str, typer.Option(help="Data set; auto is the paper's choice by length.")] = "auto",
    sample: Annotated[int, typer.Option(min=0, help="Number of the sample.")] = 0,
    seed: Annotated[int, typer.Option(help="Seed of sample 0; sample n takes seed + n.")] = 42,
    lengths: Annotated[
        Path | None, typer.Option(help="Lengths CSV to draw from; the published one by default.")
    ] = None,
    output: Annotated[Path | None, typer.Option(help="JSON file to write; printed by default.")] = None,
) -> None:
    """Draw the documents that fill a packed sequence, seeded: the same on every machine."""
    from longca.data.histogram import PUBLISHED, published_histogram, read_histogram
    from longca.data.packing import base_dataset, resolve_dataset, sample_documents

    resolved = resolve_dataset(dataset, seqlen)
    base = base_dataset(resolved)
    if lengths is None and base not in PUBLISHED:
        raise LongcaError(
            f"{dataset!r} is no published data set ({', '.join(PUBLISHED)}): "
            "give --lengths FILE, written by longca lengths"
        )
    histogram = published_histogram(base) if lengths is None else read_histogram(lengths)
    content = {
        "dataset": dataset,
        "dataset_resolved": resolved,
        "seqlen": seqlen,
        "seed": seed,
        "sample": sample,
        "documents": sample_documents(random.Random(seed + sample), resolved, histogram, seqlen),
    }
    text = json.dumps(content) + "\n"
    if output is None:
        sys.stdout.write(text)
    else:
        write_atomically(output, text)
