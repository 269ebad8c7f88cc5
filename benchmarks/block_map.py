"""A block map: drawing and storing it on the CPU, and what each kernel makes of it on a device.

    python benchmarks/block_map.py [--device cuda] [--seqlen 131072] [--block 64] [--density 0.2] [--kv-heads 8]

Each line is the best of three; the first call of a lowering, which loads and compiles, is left out.
"""

import argparse
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch

from longca.masks.blocks import BlockMap, draw_block_map, load_block_map, save_block_map


def best(call: Callable[[], object], device: str, repeats: int = 3) -> float:
    """Seconds of the fastest of some calls."""
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        if device == "cuda":
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def lowerings(block_map: BlockMap, device: str) -> dict[str, Callable[[], object]]:
    """What each kind of kernel makes of a map while it prepares."""
    from longca.kernels.sparse.segments import kept_of_pairs, lower_map
    from longca.masks.views.block_lists import block_lists
    from longca.masks.views.flex_torch import map_block_mask
    from longca.ops import video_sparse

    heads = block_map.kv_heads
    return {
        "plan of lists (vsa_triton; segments, if sparse)": lambda: video_sparse.plan(
            block_map, heads, 128, torch.device(device)
        ),
        "lists or segments? on the CPU (segments)": lambda: kept_of_pairs(block_map),
        "segments, both passes (segments, if not sparse)": lambda: lower_map(
            block_map, heads, 128, torch.bfloat16, torch.device(device)
        ),
        "lists, both orientations (vsa, fa4)": lambda: [
            block_lists(block_map, heads, device, transpose) for transpose in (False, True)
        ],
        "BlockMask (flex)": lambda: map_block_mask(block_map, heads, device),
    }


def main() -> None:
    """Print a line a step."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--seqlen", type=int, default=131072)
    parser.add_argument("--block", type=int, default=64)
    parser.add_argument("--density", type=float, default=0.2)
    parser.add_argument("--kv-heads", type=int, default=8)
    options = parser.parse_args()
    shape = ("uniform_block", options.seqlen, options.block, options.density, options.kv_heads)
    drawn = draw_block_map(*shape)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "map.npz"
        save_block_map(drawn, file)
        steps: dict[str, Callable[[], object]] = {
            "draw": lambda: draw_block_map(*shape),
            "draw, digest, area": lambda: [(m := draw_block_map(*shape)).digest, m.area],
            "write": lambda: save_block_map(drawn, file),
            "read and check": lambda: load_block_map(file),
        }
        for name, step in steps.items():
            print(f"{name:48s} {best(step, 'cpu'):8.3f} s")
    print(f"{'peak memory so far':48s} {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:8.2f} GiB")
    for name, step in lowerings(drawn, options.device).items():
        step()
        print(f"{name:48s} {best(step, options.device):8.3f} s on {options.device}")


if __name__ == "__main__":
    main()
