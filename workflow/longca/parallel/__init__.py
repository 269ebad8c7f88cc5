"""Context parallelism: attention spread over ranks by five mechanisms, over any local kernel that returns (out, lse).

A mechanism is a topology, a sharding, communication and a merge around a local kernel; see docs/context_parallel.md.
"""
