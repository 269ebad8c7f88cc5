"""Floating-point operations of attention over a mask (LongCA-bench, arXiv 2510.17896)."""

BACKWARD_OVER_FORWARD = 2.5


def attention_flops(area: float, q_heads: int, head_dim: int, pass_: str) -> float:
    """FLOPs of a pass over `area` kept cells a head: forward 4 * area * q_heads * head_dim, backward 2.5 times that."""
    return 4.0 * area * q_heads * head_dim * (BACKWARD_OVER_FORWARD if pass_ == "backward" else 1.0)
