"""BlockMask of causal_document: from the slices, beside torch's create_block_mask, in time and in peak memory.

    python benchmarks/block_mask.py [--device cpu] [--seqlens 4096,16384,32768,131072,524288]

Each row is measured in a process of its own: the first call (torch compiles in it), the median of three more, and
the memory the process grew by at its peak (on a GPU what the allocator held at most). torch looks at every cell of
seqlen x seqlen; it is left out where that takes more than 16 GB, or minutes.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

WAYS = ("slices", "torch", "torch compiled")
# create_block_mask holds the cells as booleans and sums them; compiled it fuses both, but still looks at each.
LARGEST = {"slices": 1 << 30, "torch": 32768, "torch compiled": 131072}


def build(way: str, seqlen: int, device: str) -> Callable[[], object]:
    """What makes the BlockMask once."""
    import torch
    from torch.nn.attention.flex_attention import create_block_mask

    from longca.masks.mask import draw_mask
    from longca.masks.views.flex_torch import block_mask

    slices = draw_mask("causal_document", seqlen, "prolong512k").slices
    if way == "slices":
        return lambda: block_mask(slices, seqlen, seqlen, device=device)
    keep = block_mask(slices, seqlen, seqlen, device=device).mask_mod
    create = torch.compile(create_block_mask) if way == "torch compiled" else create_block_mask
    return lambda: create(keep, None, None, seqlen, seqlen, device=device)


def peak_memory() -> int:
    """Bytes this process held at most; unlike getrusage's figure, a parent's are not in it."""
    return 1024 * int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])


def measure(way: str, seqlen: int, device: str) -> dict[str, float]:
    """Seconds of the first call and of later ones, and bytes at the peak."""
    import torch

    call = build(way, seqlen, device)
    on_gpu = device != "cpu"

    def seconds() -> float:
        start = time.perf_counter()
        call()
        if on_gpu:
            torch.cuda.synchronize()
        return time.perf_counter() - start

    if on_gpu:
        torch.cuda.reset_peak_memory_stats()
    before = peak_memory()
    first = seconds()
    later = statistics.median(seconds() for _ in range(3))
    grown = peak_memory() - before
    return {"first": first, "later": later, "peak": torch.cuda.max_memory_allocated() if on_gpu else grown}


def measure_apart(way: str, seqlen: int, device: str) -> dict[str, float] | None:
    """`measure` in a process of its own; None where the way cannot do the length."""
    if seqlen > LARGEST[way]:
        return None
    words = [sys.executable, __file__, "--device", device, "--seqlens", str(seqlen), "--only", way]
    ran = subprocess.run(words, check=True, capture_output=True, text=True)
    return json.loads(ran.stdout.splitlines()[-1])


def main() -> None:
    """Measure one cell, or all in turn and print them side by side."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seqlens", default="4096,16384,32768,65536,131072,524288")
    parser.add_argument("--only", choices=WAYS, help="measure one cell in this process and print it as JSON")
    options = parser.parse_args()
    seqlens = [int(seqlen) for seqlen in options.seqlens.split(",")]
    if options.only:
        print(json.dumps(measure(options.only, seqlens[0], options.device)))
        return
    print("| seqlen | way | first s | later s | peak MB | later / slices | peak / slices |")
    print("| ---: | --- | ---: | ---: | ---: | ---: | ---: |")
    for seqlen in seqlens:
        ours = None
        for way in WAYS:
            cell = measure_apart(way, seqlen, options.device)
            ours = ours or cell
            if cell is None or ours is None:
                print(f"| {seqlen} | {way} | not run | | | | |")
                continue
            ratios = (cell[name] / max(ours[name], 1e-9) for name in ("later", "peak"))
            shown = f"{cell['first']:.3f} | {cell['later']:.4f} | {cell['peak'] / 1e6:.0f}"
            print(
                f"| {seqlen} | {way} | {shown} | {' | '.join(f'{ratio:.1f}' for ratio in ratios)} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
