"""One reader, many counting processes: every core is used even for one single archive."""

import multiprocessing
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from multiprocessing.process import BaseProcess

from longca.data.batches import Batch
from longca.data.corpus import Corpus
from longca.data.counting import Tally, count_batch
from longca.data.tokens import load_tokenizer
from longca.errors import LongcaError

# A batch takes up to six times its size on its way (pickled, decoded, parsed): large ones wait for one another.
UNDER_WAY_BYTES = 64 * 2**20

# Counts batches: for each, in order, the bytes it takes in its file, and its counts.
Count = Callable[[Iterable[Batch]], Iterator[tuple[int, Tally]]]


def available_cores() -> int:
    """Cores this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def counting_processes(corpus: Corpus, workers: int) -> Iterator[Count]:
    """A function that counts batches in order with `workers` processes (1: with this one), which end with the context.

    It raises what count_batch raises, and LongcaError where a process died.
    """
    load_tokenizer(corpus.tokenizer)
    if workers == 1:
        yield partial(_count_here, corpus)
        return
    # Forked processes share the vocabulary just loaded (100 MiB each otherwise); only Linux forks safely.
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_become_worker)
    try:
        # Forks all processes now, before the progress bar and the readers start threads, which a fork loses.
        pool.submit(os.getpid).result()
        yield partial(_count_apart, pool, 2 * workers, corpus)
    except BrokenProcessPool:
        raise LongcaError(
            f"a counting process was killed, most likely for memory; use fewer than {workers} workers"
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


def _count_here(corpus: Corpus, batches: Iterable[Batch]) -> Iterator[tuple[int, Tally]]:
    for batch in batches:
        yield batch.stored_bytes, count_batch(corpus, batch)


def _count_apart(
    pool: ProcessPoolExecutor, most: int, corpus: Corpus, batches: Iterable[Batch]
) -> Iterator[tuple[int, Tally]]:
    """Keep up to `most` batches under way, fewer where they are large."""
    waiting: deque[tuple[int, int, Future[Tally]]] = deque()
    under_way = 0
    for batch in batches:
        while waiting and (len(waiting) == most or under_way + batch.size > UNDER_WAY_BYTES):
            size, stored_bytes, future = waiting.popleft()
            under_way -= size
            yield stored_bytes, future.result()
        waiting.append((batch.size, batch.stored_bytes, pool.submit(count_batch, corpus, batch)))
        under_way += batch.size
    for _, stored_bytes, future in waiting:
        yield stored_bytes, future.result()


def _become_worker() -> None:
    """Leave Ctrl-C to the parent, and end when the parent is gone, however it went."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: BaseProcess) -> None:
    parent.join()
    os._exit(1)
