"""One reader, many counting processes: every core is used even for one single archive."""

import multiprocessing
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.process import BaseProcess

from longca.data.batches import Batch
from longca.data.corpus import Corpus
from longca.data.counting import Tally, count_batch
from longca.data.tokens import load_tokenizer
from longca.errors import LongcaError


def available_cores() -> int:
    """Cores this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def tallies(corpus: Corpus, batches: Iterable[Batch], workers: int) -> Iterator[tuple[int, Tally]]:
    """Each batch's bytes in its file and its counts, in order, by `workers` processes (1: by this one).

    At most two batches a worker are under way, whatever the corpus's size. Raises what count_batch raises,
    and LongcaError where a process died.
    """
    load_tokenizer(corpus.tokenizer)
    if workers == 1:
        for batch in batches:
            yield batch.stored_bytes, count_batch(corpus, batch)
        return
    # Forked processes share the vocabulary just loaded (100 MiB each otherwise); only Linux forks safely.
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_become_worker)
    try:
        # Forks all processes now, before the reader's libraries start threads, which a fork loses.
        pool.submit(os.getpid).result()
        waiting: deque[tuple[int, Future[Tally]]] = deque()
        for batch in batches:
            waiting.append((batch.stored_bytes, pool.submit(count_batch, corpus, batch)))
            if len(waiting) == 2 * workers:
                stored_bytes, future = waiting.popleft()
                yield stored_bytes, future.result()
        for stored_bytes, future in waiting:
            yield stored_bytes, future.result()
    except BrokenProcessPool:
        raise LongcaError(
            f"a counting process was killed, most likely for memory; use fewer than {workers} workers"
        ) from None
    finally:
        pool.shutdown(cancel_futures=True)


def _become_worker() -> None:
    """Leave Ctrl-C to the parent, and end when the parent is gone, however it went."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: BaseProcess) -> None:
    parent.join()
    os._exit(1)
