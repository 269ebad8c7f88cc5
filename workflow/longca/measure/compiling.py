"""Compiling many cases at once: each worker prepares and calls its share, for the libraries' own caches."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from itertools import groupby
from pathlib import Path

from rich.console import Console

from longca.cases import Case
from longca.errors import LongcaError
from longca.measure.masks import case_mask
from longca.measure.protocol import Request
from longca.measure.worker_client import Worker, WorkerLostError
from longca.study.model import Study

_START_TIMEOUT_S = 600.0


def compile_cases(
    study: Study, results: Path, cases: Sequence[Case], processes: int, console: Console
) -> None:
    """Prepare and call each cell of `cases`, both passes, in `processes` workers; a line each says what came.

    Those of context parallel are left out, in a line of its own: what a rank compiles hangs on what its mechanism deals
    to it. Raises LongcaError where there are no others.
    """
    alone = [case for case in cases if case.arrangement is None]
    if not alone:
        raise LongcaError(
            f"study {study.study}: nothing to compile ahead: context parallel compiles on the ranks that measure it; "
            "right: cases of dense or sparse"
        )
    if len(alone) < len(cases):
        _say(
            console,
            "context parallel: not compiled ahead, its kernels compile on the ranks that measure them",
        )
    cells = list(dict.fromkeys(replace(case, pass_="forward") for case in alone))
    cells.sort(key=lambda cell: (cell.family, cell.kernel))
    for cell in cells:
        case_mask(study, results, cell)
    # Neighbours share a kernel, and so a worker.
    size = -(-len(cells) // processes)
    shares = [cells[start : start + size] for start in range(0, len(cells), size)]
    with ThreadPoolExecutor(len(shares)) as pool:
        for lines in pool.map(lambda share: _compile_share(study, results, share), shares):
            for line in lines:
                _say(console, line)


def _say(console: Console, line: str) -> None:
    console.print(line, markup=False, highlight=False, soft_wrap=True)


def _compile_share(study: Study, results: Path, cells: Sequence[Case]) -> list[str]:
    lines = []
    for (family, kernel), of_kernel in groupby(cells, key=lambda cell: (cell.family, cell.kernel)):
        waiting = list(of_kernel)
        while waiting:
            lines += _compile_until_lost(study, results, family, kernel, waiting)
    return lines


def _compile_until_lost(
    study: Study, results: Path, family: str, kernel: str, waiting: list[Case]
) -> list[str]:
    """Take cells from `waiting` in one worker, until there are none or it is lost at one."""
    lines = []
    protocol = study.measure
    with Worker(family, kernel, protocol.device, 1, _START_TIMEOUT_S) as worker:
        cell = waiting[0]
        try:
            if not worker.load().serves:
                waiting.clear()
                return [f"{family} {kernel}: missing"]
            while waiting:
                cell = waiting.pop(0)
                outcome = worker.measure(_request(results, cell), protocol.case_timeout)
                lines.append(_line(cell, outcome.status, outcome.reason))
                if outcome.status in ("out_of_memory", "crashed"):
                    break
        except WorkerLostError as error:
            if waiting and waiting[0] is cell:  # while it started: its other cells would come no further
                waiting.clear()
            lines.append(_line(cell, error.status, str(error)))
    return lines


def _request(results: Path, cell: Case) -> Request:
    mask_file = str(results / cell.mask_file)
    return Request(number=0, gradients=True, case=asdict(cell), mask_file=mask_file, warmups=0, repetitions=0)


def _line(cell: Case, status: str, reason: str | None) -> str:
    place = f"{cell.family} {cell.kernel} {cell.pattern} {cell.seqlen} {cell.q_heads}-{cell.kv_heads}"
    return f"{place}: {'compiled' if status == 'ok' else status} {reason or ''}".rstrip()
