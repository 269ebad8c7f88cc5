"""Floating-point operations of attention over a mask (LongCA-bench, arXiv 2510.17896), and what it must move."""

ELEMENT_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2}
BACKWARD_OVER_FORWARD = 2.5


def attention_flops(area: float, q_heads: int, head_dim: int, pass_: str) -> float:
    """FLOPs of a pass over `area` kept cells a head: forward 4 * area * q_heads * head_dim, backward 2.5 times that."""
    return 4.0 * area * q_heads * head_dim * (BACKWARD_OVER_FORWARD if pass_ == "backward" else 1.0)


def least_bytes(
    seqlen: int, q_heads: int, kv_heads: int, head_dim: int, element_bytes: int, pass_: str
) -> float:
    """Bytes a pass must move at least, each tensor once: q, k, v, out; in a backward their gradients as well."""
    of_queries, of_keys = (2, 2) if pass_ == "forward" else (4, 4)
    return float(seqlen * head_dim * element_bytes * (of_queries * q_heads + of_keys * kv_heads))
