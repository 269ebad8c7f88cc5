"""Commands that measure: a study's series, one question, and what is here to measure with."""

import os
from pathlib import Path
from typing import Annotated

import typer

from longca.cli.only import Only, choose
from longca.cli.options import refuse_given
from longca.cli.time_budget import TimeBudget, spending
from longca.errors import LongcaError
from longca.names import unknown_name

_ON_RANKS = "context_parallel"


def register(app: typer.Typer) -> None:
    """Add this stage's commands to the application."""
    app.command()(measure)
    app.command("compile")(compile_)
    app.command()(doctor)


def measure(
    study: Annotated[Path | None, typer.Option(help="Config file of a study: measure its series.")] = None,
    only: Only = None,
    time_budget: TimeBudget = None,
    retry: Annotated[
        str | None, typer.Option(help="Measure these statuses of the study again, as crashed,timeout.")
    ] = None,
    kernel: Annotated[
        list[str] | None, typer.Option(help="Without a study: kernel to ask; repeatable; all if left out.")
    ] = None,
    pattern: Annotated[str | None, typer.Option(help="Without a study: the mask pattern.")] = None,
    seqlen: Annotated[str | None, typer.Option(help="Without a study: tokens, as 2048 or 8k.")] = None,
    dataset: Annotated[
        str | None, typer.Option(help="Without a study: whose documents are sampled; auto by default.")
    ] = None,
    heads: Annotated[str | None, typer.Option(help="Without a study: query-kv heads, as 64-8.")] = None,
    head_dim: Annotated[int | None, typer.Option(help="Without a study: size of a head.")] = None,
    dtype: Annotated[str | None, typer.Option(help="Without a study: float32, float16 or bfloat16.")] = None,
    device: Annotated[
        str | None, typer.Option(help="Without a study: auto, cpu or cuda; auto by default.")
    ] = None,
) -> None:
    """Measure the series of a study, resuming from its journals, or answer one question without a study."""
    if study is not None:
        asking = {
            "--kernel": kernel,
            "--pattern": pattern,
            "--seqlen": seqlen,
            "--dataset": dataset,
            "--heads": heads,
            "--head-dim": head_dim,
            "--dtype": dtype,
            "--device": device,
        }
        refuse_given(
            asking,
            "is for a question, without --study; right: the study's config, and --only, as --only kernel=sdpa",
        )
        _measure_study(study, only, time_budget, _parse_retry(retry))
        return
    of_study = {"--only": only, "--time-budget": time_budget, "--retry": retry}
    refuse_given(of_study, "is for a study; right: with --study FILE")
    if pattern is None or seqlen is None:
        raise LongcaError(
            "measure: right: either --study FILE, or --pattern and --seqlen with --kernel, --heads ..."
        )
    from rich.console import Console

    from longca.measure.question import Question, ask

    asked = Question(kernel or [], pattern, seqlen, dataset, heads, head_dim, dtype, device)
    Console().print(ask(asked))


def _parse_retry(text: str | None) -> frozenset[str]:
    """The statuses of --retry; none without it."""
    from longca.measure.record import STATUSES

    statuses = [status for status in (text or "").split(",") if status]
    for status in statuses:
        if status not in STATUSES:
            raise LongcaError(f"--retry {text}: {unknown_name(status, STATUSES, 'status')}")
    return frozenset(statuses)


def _measure_study(
    path: Path, only: list[str] | None, time_budget: str | None, retry: frozenset[str]
) -> None:
    from rich.console import Console

    from longca.measure.freezing import refuse_frozen
    from longca.measure.running import measure_series
    from longca.measure.world.following import follow
    from longca.measure.world.launching import launch_on_nodes
    from longca.measure.world.membership import find_membership
    from longca.measure.world.running import check_world, measure_on_ranks
    from longca.study.loading import read_study

    study = read_study(path)
    refuse_frozen(study, path)
    chosen = choose(study, only)
    with spending(time_budget) as budget:
        membership = find_membership(os.environ)
        check_world(chosen, membership)
        if membership is None:
            launch_on_nodes(study, chosen)
        elif membership.rank > 0:
            follow(membership)
            return
        console, results = Console(stderr=True), Path("results") / study.study
        alone = [one for one in chosen if one.family != _ON_RANKS]
        if alone:
            measure_series(study, results, alone, budget, retry, console)
        on_ranks = [one for one in chosen if one.family == _ON_RANKS]
        if on_ranks:
            measure_on_ranks(study, results, on_ranks, budget, retry, console, membership)


def compile_(
    study: Annotated[Path, typer.Option(help="Config file of a study.")],
    processes: Annotated[int, typer.Option(min=1, help="How many compile at once, on the study's device.")],
    only: Only = None,
) -> None:
    """Compile a study's kernels many at a time, into their libraries' caches, so that measuring finds them there.

    Nothing is timed, checked or recorded. For a GPU that is lent by the minute: without it, it waits for compilers.
    Context parallel is left out: its kernels compile on the ranks that measure them.
    """
    from rich.console import Console

    from longca.measure.compiling import compile_cases
    from longca.measure.freezing import refuse_frozen
    from longca.study.loading import read_study

    read = read_study(study)
    refuse_frozen(read, study)
    cases = [case for one in choose(read, only) for case in one.cases]
    compile_cases(read, Path("results") / read.study, cases, processes, Console(stderr=True))


def doctor() -> None:
    """Say what is here: GPUs, processor, libraries, and why a kernel is missing."""
    from rich.console import Console

    from longca.measure.doctor import examine

    examine(Console())
