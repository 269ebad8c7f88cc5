"""Compiles the fused merge for Hopper, without a GPU, and prints as JSON in what order it touches memory.

A program of its own, because it puts a stand-in for the GPU driver into Triton.
"""

import json
import re

import torch
from segments_compiled import Hopper
from triton.runtime.driver import driver
from triton.runtime.jit import JITFunction

from longca.parallel.merge_fused import merge_fused

OPERATION = re.compile(r"\b(ld\.global|st\.global|bar\.sync|barrier\.sync)")


def launch(kernel, grid):
    def record(*arguments, **constants):
        ptx = kernel.warmup(*arguments, grid=grid, **constants).asm["ptx"]
        orders.append([found[1][:2] for line in ptx.splitlines() if (found := OPERATION.search(line))])

    return record


orders: list[list[str]] = []
driver.set_active(Hopper())
JITFunction.__getitem__ = launch
for head_dim, dtype in (
    (128, torch.bfloat16),
    (128, torch.float32),
    (64, torch.float16),
    (16, torch.bfloat16),
):
    out, part = (torch.zeros(2, 64, head_dim, dtype=dtype) for _ in range(2))
    lse, part_lse = (torch.zeros(2, 64) for _ in range(2))
    merge_fused(out, out, lse, part, part_lse)
    merge_fused(torch.zeros_like(out), out, lse, part, part_lse)
print(json.dumps(orders))
