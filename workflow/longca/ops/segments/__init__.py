"""Attention under any mask made of slices, over the segments view: plan once, then forward and backward."""

from longca.ops.segments.operator import attention, backward, forward
from longca.ops.segments.plan import Plan, plan

__all__ = ["Plan", "attention", "backward", "forward", "plan"]
