"""Measuring the series of context parallel: one world a kernel and number of ranks, all mechanisms in turn."""

import time
from collections.abc import Sequence
from contextlib import nullcontext
from itertools import groupby
from pathlib import Path

from rich.console import Console

from longca.cases import Series, study_series
from longca.errors import LongcaError
from longca.measure.budget import Budget
from longca.measure.device_lock import timing_lock
from longca.measure.progress import series_progress
from longca.measure.running import turns
from longca.measure.series import SeriesRunner
from longca.measure.world.joined_world import Conductor
from longca.measure.world.membership import Membership
from longca.measure.world.session import KeptWorld, WorldSession
from longca.study.model import Study

FAMILY = "context_parallel"


def check_world(series: Sequence[Series], membership: Membership | None) -> None:
    """Refuse series that the world a launcher started is not for, before anything is measured.

    Raises LongcaError for a family of one process, or another number of ranks, in that world.
    """
    if membership is None:
        return
    for one in series:
        if one.family != FAMILY:
            raise LongcaError(
                f"{one.name}: is measured in one process, and {membership.launcher} started "
                f"{membership.world_size}; right: --only family={FAMILY},world_size={membership.world_size}"
            )
        if one.world_size != membership.world_size:
            raise LongcaError(
                f"{one.name}: is for {one.world_size} ranks, and {membership.launcher} started "
                f"{membership.world_size}; right: --only world_size={membership.world_size}"
            )


def measure_on_ranks(
    study: Study,
    results: Path,
    series: Sequence[Series],
    budget: Budget,
    retry: frozenset[str],
    console: Console,
    membership: Membership | None,
) -> None:
    """Measure the cases of `series` into `results`, resuming; on rank 0 where a launcher started the ranks.

    Raises LongcaError, and OutOfBudgetError where the budget ends.
    """
    started = time.monotonic()
    whole = {one.name: one for one in study_series(study)}
    parts = [part for turn in turns(study, series) for part in turn.parts]
    # A launcher has given its ranks their GPUs; ranks that are started here need one each.
    gpus = None if membership else max(part.world_size for part in parts)
    lock = timing_lock(study.measure.device, budget, gpus)
    with lock, Conductor(membership) if membership else nullcontext() as conductor:
        for (kernel, world_size), group in groupby(parts, key=lambda part: (part.kernel, part.world_size)):
            with KeptWorld(kernel, world_size, study.measure, budget, conductor) as world:
                for part in group:
                    session, one = WorldSession(world, part.mechanism or ""), whole[part.name]
                    runner = SeriesRunner(study, results, one, retry, started)
                    with series_progress(study, one, part.cases, console) as progress:
                        runner.run(session, budget, progress, part.cases)
                    started = time.monotonic()
