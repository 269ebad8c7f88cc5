"""Compiles FlashMask's kernels for Hopper on a machine without a GPU; prints what they need, as JSON.

A program of its own, because it puts a stand-in for the GPU driver into Triton.
"""

import json
import sys
from dataclasses import replace

import torch
from segments_compiled import Hopper, assembled
from triton.runtime.driver import driver
from triton.runtime.jit import JITFunction

from longca.masks.patterns import PATTERNS
from longca.masks.slices import Slice
from longca.masks.views import flashmask as view
from longca.ops import flashmask
from longca.ops.flashmask.tiles import BY_HEAD_DIM

# What is hidden above the diagonal starts and ends anywhere.
GLOBAL = PATTERNS["global_sliding"].build(256, (), {"window": 60, "global_tokens": 40})


def compile_all(slices, dim, dtype, splits=1):
    """What each kernel needs that a forward and a backward launch. `splits` is given: no spans are counted here."""
    kernels = {}

    def launch(kernel, grid):
        def record(*arguments, **constants):
            built = kernel.warmup(*arguments, grid=grid, **constants)
            kernels[kernel.__name__] = {**assembled(built), "shared_bytes": built.metadata.shared}

        return record

    JITFunction.__getitem__ = launch
    q, k = torch.zeros(4, 256, dim, dtype=dtype), torch.zeros(2, 256, dim, dtype=dtype)
    lowered = view.lower(slices, 256, 256)
    plan = replace(flashmask.plan(lowered, 4, 2, dim, torch.device("cpu"), BY_HEAD_DIM[dim]), splits=splits)
    out, lse = flashmask.forward(q, k, k, plan)
    flashmask.backward(q, k, k, out, lse, q, plan)
    return kernels


if __name__ == "__main__":
    driver.set_active(Hopper())
    json.dump(
        {
            "causal 128": compile_all([Slice(0, 256, 0, 256, "causal")], 128, torch.bfloat16),
            "full 64": compile_all([Slice(0, 256, 0, 256, "full")], 64, torch.float16),
            "global 128": compile_all(GLOBAL, 128, torch.bfloat16, splits=2),
        },
        sys.stdout,
    )
