"""Commands that measure: a study's series, one question, and what is here to measure with."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from longca.errors import LongcaError
from longca.names import unknown_name

if TYPE_CHECKING:
    from longca.cases import Case, Series
    from longca.study.model import Study

_OUT_OF_BUDGET = 75
_SERIES_KEYS = ("family", "dataset", "mechanism", "kernel", "pattern", "heads", "world_size")
_ON_RANKS = "context_parallel"
_CASE_KEYS = ("seqlen", "pass")
Only = Annotated[
    list[str] | None,
    typer.Option(help="Cases of the study, as kernel=sdpa,pattern=causal,seqlen=8k; repeatable."),
]


def register(app: typer.Typer) -> None:
    """Add this stage's commands to the application."""
    app.command()(measure)
    app.command("compile")(compile_)
    app.command()(doctor)


def measure(
    study: Annotated[Path | None, typer.Option(help="Config file of a study: measure its series.")] = None,
    only: Only = None,
    time_budget: Annotated[
        str | None,
        typer.Option(help="Stop cleanly within this time, as 8m, and within a SLURM job's; exit code 75."),
    ] = None,
    retry: Annotated[str, typer.Option(help="Measure these statuses again, as crashed,timeout.")] = "",
    kernel: Annotated[
        list[str] | None, typer.Option(help="Without a study: kernel to ask; repeatable; all if left out.")
    ] = None,
    pattern: Annotated[str | None, typer.Option(help="Without a study: the mask pattern.")] = None,
    seqlen: Annotated[str | None, typer.Option(help="Without a study: tokens, as 2048 or 8k.")] = None,
    dataset: Annotated[str, typer.Option(help="Without a study: dataset of the documents.")] = "auto",
    heads: Annotated[str | None, typer.Option(help="Without a study: query-kv heads, as 64-8.")] = None,
    head_dim: Annotated[int | None, typer.Option(help="Without a study: size of a head.")] = None,
    dtype: Annotated[str | None, typer.Option(help="Without a study: float32, float16 or bfloat16.")] = None,
    device: Annotated[str, typer.Option(help="Without a study: auto, cpu or cuda.")] = "auto",
) -> None:
    """Measure the series of a study, resuming from its journals, or answer one question without a study."""
    question = {
        "--kernel": kernel,
        "--pattern": pattern,
        "--seqlen": seqlen,
        "--heads": heads,
        "--head-dim": head_dim,
        "--dtype": dtype,
    }
    if study is not None:
        for option, value in question.items():
            if value is not None:
                raise LongcaError(
                    f"measure: {option} does not go with --study; right: --only, as --only kernel=sdpa"
                )
        _measure_study(study, only or [], time_budget, frozenset(filter(None, retry.split(","))))
    elif pattern is None or seqlen is None:
        raise LongcaError(
            "measure: right: either --study FILE, or --pattern and --seqlen with --kernel, --heads ..."
        )
    else:
        from rich.console import Console

        from longca.measure.question import Question, ask

        asked = Question(kernel or [], pattern, seqlen, dataset, heads, head_dim, dtype, device)
        Console().print(ask(asked))


def _measure_study(path: Path, only: list[str], time_budget: str | None, retry: frozenset[str]) -> None:
    from rich.console import Console

    from longca.measure.budget import Budget, OutOfBudgetError
    from longca.measure.freezing import refuse_frozen
    from longca.measure.running import measure_series
    from longca.measure.slurm import within_job
    from longca.measure.world.following import follow
    from longca.measure.world.launching import launch_on_nodes
    from longca.measure.world.membership import find_membership
    from longca.measure.world.running import check_world, measure_on_ranks
    from longca.study.loading import read_study
    from longca.study.units import parse_duration

    study = read_study(path)
    refuse_frozen(study, path)
    chosen = _choose(study, only)
    try:
        budget_s = within_job(parse_duration(time_budget) if time_budget else None)
    except ValueError as error:
        raise LongcaError(f"--time-budget: {error}") from error
    membership = find_membership(os.environ)
    check_world(chosen, membership)
    if membership is None:
        launch_on_nodes(study, chosen)
    if membership is not None and membership.rank > 0:
        follow(membership)
        return
    budget, console = Budget.of(budget_s), Console(stderr=True)
    results = Path("results") / study.study
    try:
        alone = [one for one in chosen if one.family != _ON_RANKS]
        if alone:
            measure_series(study, results, alone, budget_s, retry, console)
        on_ranks = [one for one in chosen if one.family == _ON_RANKS]
        if on_ranks:
            measure_on_ranks(study, results, on_ranks, budget, retry, console, membership)
    except OutOfBudgetError:
        typer.echo(
            "longca: the time budget ended; what was measured is kept, run again to go on",
            err=True,
        )
        raise typer.Exit(_OUT_OF_BUDGET) from None


def _choose(study: "Study", only: list[str]) -> "list[Series]":
    """The series that any of the --only texts names, with the cases it names; all without one."""
    from dataclasses import replace

    from longca.cases import study_series

    series = study_series(study)
    if not only:
        return series
    wanted = [_parse_only(text) for text in only]

    def is_wanted(one: "Series", case: "Case") -> bool:
        values = {key: str(getattr(one, key)) for key in _SERIES_KEYS}
        values |= {"seqlen": str(case.seqlen), "pass": case.pass_}
        return any(keys.items() <= values.items() for keys in wanted)

    chosen = [replace(one, cases=tuple(case for case in one.cases if is_wanted(one, case))) for one in series]
    if not any(one.cases for one in chosen):
        raise LongcaError(
            f"--only {' --only '.join(only)}: no case of study {study.study} is meant; it has {len(series)} series"
        )
    return [one for one in chosen if one.cases]


def _parse_only(text: str) -> dict[str, str]:
    from longca.units import parse_tokens

    known = (*_SERIES_KEYS, *_CASE_KEYS)
    keys = {}
    for part in text.split(","):
        key, _, value = part.partition("=")
        if key not in known:
            raise LongcaError(f"--only {text}: {unknown_name(key, known, 'key of a series or case')}")
        if not value:
            raise LongcaError(f"--only {text}: {key} has no value; right: key=value, as kernel=sdpa")
        try:
            keys[key] = str(parse_tokens(value)) if key == "seqlen" else value
        except ValueError as error:
            raise LongcaError(f"--only {text}: seqlen: {error}") from None
    return keys


def compile_(
    study: Annotated[Path, typer.Option(help="Config file of a study.")],
    processes: Annotated[int, typer.Option(min=1, help="How many compile at once, on the study's device.")],
    only: Only = None,
) -> None:
    """Compile a study's kernels many at a time, into their libraries' caches, so that measuring finds them there.

    Nothing is timed, checked or recorded. For a GPU that is lent by the minute: without it, it waits for compilers.
    """
    from rich.console import Console

    from longca.measure.compiling import compile_cases
    from longca.measure.freezing import refuse_frozen
    from longca.study.loading import read_study

    read = read_study(study)
    refuse_frozen(read, study)
    chosen = _choose(read, only or [])
    cases = [case for one in chosen if one.family != _ON_RANKS for case in one.cases]
    compile_cases(read, Path("results") / read.study, cases, processes, Console(stderr=True))


def doctor() -> None:
    """Say what is here: GPUs, processor, libraries, and why a kernel is missing."""
    from rich.console import Console

    from longca.measure.doctor import examine

    examine(Console())
