"""The Hopper form of the forward: its launch. TMA, wgmma and warp specialisation, in Gluon."""

import torch
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

from longca.ops.video_sparse.gluon_forward import gluon_forward_kernel
from longca.ops.video_sparse.plan import BLOCK, Plan

STAGES = 3
MAXNREG = 128  # of a program's 256 threads when it starts: two programs take an SM's 65,536
TYPES = {torch.bfloat16: gl.bfloat16, torch.float16: gl.float16}


def forward(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, out: torch.Tensor, lse: torch.Tensor, plan: Plan
) -> None:
    """Writes the out and lse of longca.ops.video_sparse.forward; one program a block of queries and query head.

    Raises ValueError for another dtype than bf16 and fp16.
    """
    if q.dtype not in TYPES:
        raise ValueError(f"q is {q.dtype}; the gluon form takes bfloat16 and float16")
    counts, lists = plan.rows.counts, plan.rows.lists
    gluon_forward_kernel[counts.shape[1], plan.q_heads](
        _blocks(q), _blocks(k), _blocks(v), _blocks(out), lse, counts, lists, lists.shape[2],
        SCALE2=plan.scale2, GROUP=plan.group, BLOCK=BLOCK, D=plan.head_dim, STAGES=STAGES,
        num_warps=4, maxnreg=MAXNREG,
    )  # fmt: skip


def _blocks(x: torch.Tensor) -> TensorDescriptor:
    """Blocks of rows of x, its heads one after another: none spans two heads, for their rows are whole blocks."""
    box = [BLOCK, x.shape[-1]]
    layout = gl.NVMMASharedLayout.get_default_for(box, TYPES[x.dtype])
    return TensorDescriptor.from_tensor(x.view(-1, x.shape[-1]), box, layout)
