"""A package of local kernels beside longca, found through entry points: right ones, and some that fail on rank 1."""

from pathlib import Path

HEAD = """
import os
import time
from dataclasses import replace

import torch
import torch.distributed as dist

from longca.kernels.interface import UnsupportedError
from longca.ops import segments
from longca.parallel.local_segments import KERNEL as SEGMENTS


class Calls:
    # Of a case of 64 rows a rank, on rank 1, something goes wrong.
    def plan(self, *arguments):
        return segments.plan(*arguments)

    def forward(self, q, k, v, plan):
        return segments.forward(q, k, v, plan)

    def backward(self, *arguments):
        return segments.backward(*arguments)


def here(q):
    return dist.get_rank() == 1 and q.shape[1] == 64
"""

# What each kernel does differently, by name.
KERNELS = {
    "right": "",
    "exits": """
    def forward(self, q, k, v, plan):
        if here(q):
            print("the end of it", flush=True)
            os._exit(3)
        return segments.forward(q, k, v, plan)""",
    "hangs": """
    def forward(self, q, k, v, plan):
        if here(q):
            time.sleep(3600)
        return segments.forward(q, k, v, plan)""",
    "memory": """
    def backward(self, q, *others):
        if here(q):
            raise torch.OutOfMemoryError("no more memory")
        return segments.backward(q, *others)""",
    "says_no": """
    def plan(self, slices, queries, *others):
        if dist.get_rank() == 1 and queries == 64:
            raise UnsupportedError("not this part of the mask")
        return segments.plan(slices, queries, *others)""",
    "wrong": """
    def backward(self, q, *others):
        dq, dk, dv = segments.backward(q, *others)
        return dq, dk * 1.03 if here(q) else dk, dv""",
}


def write_package(site: Path) -> None:
    """The package and what pip would leave of it, in a folder to put on the path."""
    folder = site / "fake_local"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("")
    for name, body in KERNELS.items():
        own = f"class Own(Calls):\n    pass\n{body}\n"
        kernel = f"KERNEL = replace(SEGMENTS, summary={name!r}, load=Own, distributions=('torch',))\n"
        (folder / f"{name}.py").write_text(f"{HEAD}\n\n{own}\n\n{kernel}")
    absent = (
        "from dataclasses import replace\nfrom longca.parallel.local_segments import KERNEL as SEGMENTS\n"
    )
    (folder / "absent.py").write_text(f"{absent}KERNEL = replace(SEGMENTS, imports=('no_such_library',))\n")
    info = site / "fake_local-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: fake-local\nVersion: 1.0\n")
    points = "".join(f"context_parallel.{name} = fake_local.{name}\n" for name in [*KERNELS, "absent"])
    (info / "entry_points.txt").write_text(f"[longca.kernels]\n{points}")
