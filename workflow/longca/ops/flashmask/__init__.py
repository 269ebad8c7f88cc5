"""FlashMask attention (arXiv 2410.01359): plan once, then forward and backward."""

from longca.ops.flashmask.operator import attention, backward, forward
from longca.ops.flashmask.plan import Plan, plan

__all__ = ["Plan", "attention", "backward", "forward", "plan"]
