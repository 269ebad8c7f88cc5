"""Whole tensors out of the ranks' own, for verification; never part of what is timed."""

import torch
import torch.distributed as dist

from longca.parallel.mechanism import rank_shard
from longca.parallel.sharding import Sharding
from longca.parallel.shards import place
from longca.parallel.topology import Topology


def gather(local: torch.Tensor, sharding: Sharding, topology: Topology) -> torch.Tensor:
    """[heads, tokens, ...] on every rank from each rank's [heads, rows, ...]; padding is dropped. Collective."""
    shards = [rank_shard(sharding, topology, rank) for rank in range(topology.world_size)]
    whole = local.new_zeros((local.shape[0], sharding.seqlen, *local.shape[2:]))
    rows = max(shard.rows for shard in shards)
    padded = local.new_zeros((local.shape[0], rows, *local.shape[2:]))
    padded[:, : local.shape[1]] = local
    parts = [torch.empty_like(padded) for _ in shards]
    dist.all_gather(parts, padded)
    for part, shard in zip(parts, shards, strict=True):
        place(part[:, : shard.rows], shard, whole)
    return whole
