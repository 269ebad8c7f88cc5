"""Commands of the data stage: corpora to document lengths, lengths to packed samples."""

import json
import random
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from longca.cli.options import Seqlen, refuse_given
from longca.data.histogram import PUBLISHED, Histogram
from longca.data.layouts import LAYOUTS
from longca.errors import LongcaError
from longca.files import write_atomically


def register(app: typer.Typer) -> None:
    """Add this stage's commands to the application."""
    app.command()(lengths)
    app.command()(documents)


def lengths(
    dataset: Annotated[
        str, typer.Argument(help=f"{', '.join(PUBLISHED)}, or a name for the corpus to count.")
    ],
    study: Annotated[
        Path | None,
        typer.Option(help="Study whose datasets section describes the corpus; a published one needs none."),
    ] = None,
    layout: Annotated[str | None, typer.Option(help=f"Keys of its records: {', '.join(LAYOUTS)}.")] = None,
    files: Annotated[list[str] | None, typer.Option(help="Glob or folder of the corpus; repeatable.")] = None,
    hugging_face: Annotated[str | None, typer.Option(help="Dataset of the hub, in place of files.")] = None,
    split: Annotated[str | None, typer.Option(help="Split of the hub's dataset.")] = None,
    config: Annotated[str | None, typer.Option(help="Configuration of the hub's dataset.")] = None,
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
    """Read a dataset's document lengths: a published histogram, or a corpus that is counted here."""
    from longca.data.histogram import published_histogram, write_histogram
    from longca.data.summary import print_summary

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
    described = {key: value for key, value in given.items() if value not in (None, [])}
    if dataset in PUBLISHED:
        if described:
            raise LongcaError(f"{dataset} is a published dataset: give a corpus of your own another name")
        refuse_given({"--workers": workers}, f"{dataset} is a published dataset, nothing is counted")
        histogram = published_histogram(dataset)
        notes = ["published shares; lengths evenly spread inside a bin, as they are drawn"]
    else:
        histogram, notes = _count(dataset, study, described, workers)
    if output is not None:
        write_histogram(output, histogram)
        notes.append(f"written to {output}")
    print_summary(dataset, histogram, notes)


def _count(
    dataset: str, study: Path | None, described: dict[str, Any], workers: int | None
) -> tuple[Histogram, list[str]]:
    """The histogram of the corpus that the study or the options describe, and notes on the count."""
    from longca.data.corpus import parse_corpus
    from longca.data.lengths import count_corpus
    from longca.data.workers import available_cores

    if study is not None and described:
        raise LongcaError(f"--study {study} describes the corpus: leave out {', '.join(described)}")
    if study is not None:
        from longca.study.corpora import read_corpus

        corpus = read_corpus(study, dataset)
    elif described:
        corpus = parse_corpus(dataset, described, "command line")
    else:
        raise LongcaError(
            f"{dataset!r} is no published dataset ({', '.join(PUBLISHED)}): "
            "give --study FILE with its entry under datasets, or --layout and --files"
        )
    histogram, tally = count_corpus(dataset, corpus, workers or available_cores())
    return histogram, tally.notes()


def documents(
    seqlen: Seqlen,
    dataset: Annotated[str, typer.Option(help="Dataset; auto is the paper's choice by length.")] = "auto",
    sample: Annotated[int, typer.Option(min=0, help="Number of the sample.")] = 0,
    seed: Annotated[int, typer.Option(help="Seed of sample 0; sample n takes seed + n.")] = 42,
    lengths: Annotated[
        Path | None, typer.Option(help="Lengths CSV to draw from; the published one by default.")
    ] = None,
    output: Annotated[Path | None, typer.Option(help="JSON file to write; printed by default.")] = None,
) -> None:
    """Draw the documents that fill a packed sequence, seeded: the same on every machine."""
    from longca.data.histogram import published_histogram, read_histogram
    from longca.data.packing import base_dataset, resolve_dataset, sample_documents

    resolved = resolve_dataset(dataset, seqlen)
    base = base_dataset(resolved)
    if lengths is None and base not in PUBLISHED:
        raise LongcaError(
            f"{dataset!r} is no published dataset ({', '.join(PUBLISHED)}): "
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
