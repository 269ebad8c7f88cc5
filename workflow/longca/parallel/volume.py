"""Bytes a rank sends in one pass, from the formulas of each mechanism; what is counted must equal them.

With t tokens a rank, D the head dimension and e bytes an element; sums of gradients travel in 4 bytes, 8 for
float64.
"""

from math import lcm

from longca.parallel.topology import Topology


def sent_bytes(
    topology: Topology,
    tokens: int,
    q_heads: int,
    kv_heads: int,
    head_dim: int,
    element_bytes: int,
    pass_: str,
) -> int:
    """Bytes sent by a rank of `tokens` tokens, equal on all ranks, in a forward or a backward pass.

    The topology tells the mechanism: ring_p2p, ring_allgather and loongtrain's double ring send equally much.

    All-to-all over U: (U - 1) / U * t D e (2 q_heads + 2 kv'), kv' = lcm(kv_heads, U). Ring over R, or gather:
    (R - 1) * 2 t kv' D e forward; a backward sends KV again and as many dKV in exact precision.
    """
    u = topology.ulysses
    replicated = lcm(kv_heads, u)
    exchanged = (u - 1) * tokens * head_dim * element_bytes * (2 * q_heads + 2 * replicated) // u
    # A ring shard has U t tokens of kv' / U heads.
    numbers = (topology.ring - 1) * 2 * tokens * replicated * head_dim
    each = element_bytes if pass_ == "forward" else element_bytes + max(4, element_bytes)
    return exchanged + numbers * each
