"""Compiles our Video Sparse Attention for Hopper on a machine without a GPU; prints what it needs, as JSON.

A program of its own, because it puts a stand-in for the GPU driver into Triton.
"""

import json
import sys

import torch
from segments_compiled import Hopper, assembled
from triton.runtime.driver import driver
from triton.runtime.jit import JITFunction

from longca.masks.blocks import draw_block_map
from longca.ops import video_sparse
from longca.ops.video_sparse.plan import TABLE, heads_a_program


def compile_all(seqlen, q_heads, kv_heads, dim, dtype, form="triton"):
    """What each kernel needs that a forward and a backward launch."""
    kernels = {}

    def launch(kernel, grid):
        def record(*arguments, **constants):
            built = kernel.warmup(*arguments, grid=grid, **constants)
            kernels[kernel.__name__] = {**assembled(built), "shared_bytes": built.metadata.shared}

        return record

    JITFunction.__getitem__ = launch
    q, k = (torch.zeros(heads, seqlen, dim, dtype=dtype) for heads in (q_heads, kv_heads))
    launches = TABLE[dim, heads_a_program(q_heads // kv_heads, dim)]
    block_map = draw_block_map("uniform_block", seqlen, 64, 0.5, kv_heads)
    plan = video_sparse.plan(block_map, q_heads, dim, torch.device("cpu"), form, launches)
    out, lse = video_sparse.forward(q, k, k, plan)
    video_sparse.backward(q, k, k, out, lse, q, plan)
    return kernels


if __name__ == "__main__":
    driver.set_active(Hopper())
    json.dump(
        {
            "MHA 128": compile_all(512, 2, 2, 128, torch.bfloat16),
            "GQA 128": compile_all(512, 4, 1, 128, torch.bfloat16),
            "GQA 64, ragged": compile_all(500, 4, 1, 64, torch.float16),
            "gluon MHA": compile_all(512, 2, 2, 128, torch.bfloat16, "gluon"),
            "gluon GQA": compile_all(512, 4, 1, 128, torch.float16, "gluon"),
        },
        sys.stdout,
    )
