"""One measurement at a time on a device: a lock for each GPU, and one for the processor."""

import os
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from longca.errors import LongcaError
from longca.measure.budget import NO_LIMIT, Budget
from longca.measure.device_probe import visible_gpus

_POLL_S = 1.0


@contextmanager
def timing_lock(device: str, budget: Budget = NO_LIMIT, gpus: int | None = 1) -> Iterator[None]:
    """Held while a process times on `gpus` GPUs (None: on all it sees) or on the processor: no two measurements meet.

    device: auto, cpu or cuda. Within, CUDA_VISIBLE_DEVICES names the GPUs held and no other. Raises OutOfBudgetError
    where the budget ends before enough are free, LongcaError where there are not so many.
    """
    visible = [] if device == "cpu" else visible_gpus()
    if not visible:
        with _held(["cpu"], 1, budget):
            yield
        return
    gpus = len(visible) if gpus is None else gpus
    if len(visible) < gpus:
        raise LongcaError(
            f"{gpus} GPUs are needed, {len(visible)} are here; right: a machine with as many as ranks"
        )
    before = os.environ.get("CUDA_VISIBLE_DEVICES")
    with _held(visible, gpus, budget) as held:
        os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(held)
        try:
            yield
        finally:
            del os.environ["CUDA_VISIBLE_DEVICES"]
            if before is not None:
                os.environ["CUDA_VISIBLE_DEVICES"] = before


@contextmanager
def _held(names: Sequence[str], count: int, budget: Budget) -> Iterator[list[str]]:
    """The first `count` of these locks that are free, waiting until there are so many."""
    locks = {name: FileLock(_file(name), mode=0o666) for name in names}
    said = False
    while True:
        held = _take(locks, count)
        try:
            if len(held) == count:
                yield held
                return
        finally:
            for name in held:
                locks[name].release()
        if not said:
            print(f"waiting for another measurement on {', '.join(names)}", file=sys.stderr, flush=True)
            said = True
        time.sleep(budget.left(_POLL_S))


def _take(locks: dict[str, FileLock], count: int) -> list[str]:
    held: list[str] = []
    for name, lock in locks.items():
        if len(held) == count:
            break
        try:
            lock.acquire(blocking=False)
        except Timeout:
            continue
        held.append(name)
    return held


def _file(name: str) -> Path:
    return Path(tempfile.gettempdir()) / f"longca-timing-{re.sub('[^A-Za-z0-9-]', '-', name)}.lock"
