"""Compiles our Video Sparse Attention for Hopper on a machine without a GPU; prints what it needs, as JSON.

A program of its own, because it puts a stand-in for the GPU driver into Triton.
"""

import json
import re
import sys

import torch
from segments_compiled import Hopper, assembled, disassembled
from triton.runtime.driver import driver
from triton.runtime.jit import JITFunction

from longca.masks.blocks import draw_block_map
from longca.ops import video_sparse
from longca.ops.video_sparse.plan import TABLE


def overwritten(kernel):
    """Whether two products of a loop have their left operands in the same registers.

    In the forward and in dQ one of them is the rows, which every step reads: whatever else is put there ends them.
    """
    lines, begun = disassembled(kernel).splitlines(), {}
    for at, line in enumerate(lines):
        if label := re.match(r"\s*\.(L_x_\d+):", line):
            begun[label[1]] = at
        back = re.search(r"@!?P\d BRA `\(\.(L_x_\d+)\)", line)  # a wait's way back is unconditional
        if back and back[1] in begun:
            left = re.findall(r"HGMMA\S+ R\d+, (R\d+),", "\n".join(lines[begun[back[1]] : at]))
            if len(left) > len(set(left)):
                return True
    return False


def compile_all(seqlen, q_heads, kv_heads, dim, dtype, form="triton"):
    """What each kernel needs that a forward and a backward launch."""
    kernels = {}

    def launch(kernel, grid):
        def record(*arguments, **constants):
            built = kernel.warmup(*arguments, grid=grid, **constants)
            kernels[kernel.__name__] = {
                **assembled(built),
                "overwritten": overwritten(built),
                "shared_bytes": built.metadata.shared,
            }

        return record

    JITFunction.__getitem__ = launch
    q, k = (torch.zeros(heads, seqlen, dim, dtype=dtype) for heads in (q_heads, kv_heads))
    launches = TABLE[dim]
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
            "MHA 64": compile_all(512, 2, 2, 64, torch.bfloat16),
            "GQA 64": compile_all(512, 4, 1, 64, torch.float16),
            "GQA 64, ragged": compile_all(500, 4, 1, 64, torch.float16),
            "gluon MHA": compile_all(512, 2, 2, 128, torch.bfloat16, "gluon"),
            "gluon GQA": compile_all(512, 4, 1, 128, torch.float16, "gluon"),
        },
        sys.stdout,
    )
