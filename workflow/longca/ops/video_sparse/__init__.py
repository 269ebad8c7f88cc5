"""Video Sparse Attention (arXiv 2505.13389) over uniform block maps: plan once, then forward and backward."""

from longca.ops.video_sparse.operator import attention, backward, forward
from longca.ops.video_sparse.plan import Plan, plan

__all__ = ["Plan", "attention", "backward", "forward", "plan"]
