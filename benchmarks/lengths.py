"""How fast corpora are counted: every container, one process beside all cores, with the memory they hold.

    python benchmarks/lengths.py --megabytes 100

The corpus is synthetic: documents as long as the Pile's, of made-up words as frequent as words are. Each figure is the
whole `longca lengths` command, start-up included; memory is the largest sum over its processes, pages they share
counted once (Linux: PSS).
"""

import argparse
import gzip
import itertools
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import zstandard
from rich.console import Console
from rich.table import Table

from longca.data.histogram import published_histogram
from longca.data.packing import draw_documents
from longca.data.workers import available_cores

SYLLABLES = [consonant + vowel for consonant in "bcdfghlmnprst" for vowel in "aeiou"]
ENDINGS = (" ",) * 12 + (", ", ". ", ".\n", " (", ") ", " 42 ")
# Longer documents are left to the tests: one of them would be the whole of a small corpus.
LONGEST_TOKENS = 50_000
READY_LENGTHS = 1_000_000


def make_texts(megabytes: float, seed: int) -> list[str]:
    """Texts of `megabytes` in all (UTF-8, 10^6 bytes), their lengths drawn from the Pile's histogram."""
    rng = random.Random(seed)
    words = ["".join(rng.choices(SYLLABLES, k=rng.randint(1, 4))) for _ in range(20_000)]
    # Zipf's law: the k-th word is drawn in proportion to 1 / k.
    shares = [1 / rank for rank in range(1, len(words) + 1)]
    texts: list[str] = []
    left = megabytes * 1e6
    while left > 0:
        for tokens in draw_documents(rng, published_histogram("pile"), 1_000_000):
            drawn = rng.choices(words, shares, k=max(1, min(tokens, LONGEST_TOKENS) * 3 // 4))
            texts.append("".join(map("".join, zip(drawn, rng.choices(ENDINGS, k=len(drawn)), strict=True))))
            left -= len(texts[-1])
            if left <= 0:
                break
    return texts


def write_corpora(folder: Path, texts: list[str]) -> dict[str, list[str]]:
    """Write the same texts in each container; gives the options of `longca lengths` for each."""
    lines = "".join(json.dumps({"text": text, "meta": {"pile_set_name": "made up"}}) + "\n" for text in texts)
    pack: dict[str, Callable[[bytes], bytes]] = {
        "jsonl": bytes,
        "jsonl.gz": gzip.compress,
        "jsonl.zst": zstandard.compress,
    }
    for container, compress in pack.items():
        (folder / f"corpus.{container}").write_bytes(compress(lines.encode()))
    pq.write_table(pa.table({"text": texts}), folder / "corpus.parquet")
    for number, text in enumerate(texts):
        file = folder / "texts" / f"{number % 100:02}" / f"{number}.txt"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    files = {container: ("pile", f"corpus.{container}") for container in (*pack, "parquet")}
    files["folder of .txt"] = ("text", "texts")
    return {
        name: ["--layout", layout, "--files", str(folder / file)] for name, (layout, file) in files.items()
    }


def write_ready_lengths(folder: Path, texts: list[str]) -> list[str]:
    """Write READY_LENGTHS rows of lengths that need no counting; gives the options of `longca lengths`."""
    lengths = list(itertools.islice(itertools.cycle(map(len, texts)), READY_LENGTHS))
    pq.write_table(pa.table({"length": lengths}), folder / "lengths.parquet")
    return ["--layout", "prolong", "--files", str(folder / "lengths.parquet")]


def measure(options: list[str], workers: int) -> tuple[float, float, int]:
    """Wall time and processor time of all processes (seconds), and peak memory (bytes) of one count."""
    longca = str(Path(sys.executable).with_name("longca"))
    command = [longca, "lengths", "benchmark", *options, "--workers", str(workers)]
    before = processor_seconds()
    start = time.perf_counter()
    process = psutil.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    peak = 0
    while process.poll() is None:
        peak = max(peak, sum(map(held_bytes, [process, *process.children(recursive=True)])))
        time.sleep(0.1)
    if process.returncode:
        sys.exit(f"{' '.join(command)} failed")
    return time.perf_counter() - start, processor_seconds() - before, peak


def processor_seconds() -> float:
    """Processor time of the processes that this one started and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def held_bytes(process: psutil.Process) -> int:
    """A process's memory, its share of shared pages; 0 once it has ended."""
    try:
        return process.memory_full_info().pss
    except psutil.Error:
        return 0


def main() -> None:
    """Make the corpora, count each with one process and with all cores, print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--megabytes", type=float, default=100, help="text in the corpus, 10^6 bytes")
    parser.add_argument("--passes", type=int, default=3, help="times each count is repeated")
    parser.add_argument("--seed", type=int, default=0, help="seed of the corpus")
    arguments = parser.parse_args()
    cores = available_cores()
    columns = ("corpus", "processes", "MB/s", "MB a CPU second", "documents/s", "MiB held", "speed-up")
    table = Table(*columns, title=f"{arguments.megabytes:g} MB of text, {os.uname().machine}, {cores} cores")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        texts = make_texts(arguments.megabytes, arguments.seed)
        megabytes = sum(map(len, texts)) / 1e6
        corpora: dict[str, tuple[list[str], float | None, int]] = {
            corpus: (options, megabytes, len(texts))
            for corpus, options in write_corpora(folder, texts).items()
        }
        corpora["ready lengths"] = (write_ready_lengths(folder, texts), None, READY_LENGTHS)
        for corpus, (options, size, documents) in corpora.items():
            # The peers take turns, and the fastest pass of each counts: what else the machine does only slows.
            passes = [
                {workers: measure(options, workers) for workers in sorted({1, cores})}
                for _ in range(arguments.passes)
            ]
            alone = min(each[1][0] for each in passes)
            for workers in passes[0]:
                seconds, processor, _ = min(each[workers] for each in passes)
                peak = max(each[workers][2] for each in passes)
                speeds = (f"{size / seconds:.1f}", f"{size / processor:.1f}") if size else ("", "")
                rest = (f"{documents / seconds:,.0f}", f"{peak / 2**20:.0f}", f"{alone / seconds:.2f}x")
                table.add_row(corpus, str(workers), *speeds, *rest)
    Console().print(table)


if __name__ == "__main__":
    main()
