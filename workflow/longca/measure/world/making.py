"""From a case to its mechanism on this rank."""

import torch

from longca.arrangement import Arrangement
from longca.cases import Case
from longca.errors import LongcaError
from longca.kernels.interface import UnsupportedError
from longca.masks.mask import Mask
from longca.parallel.groups import Groups
from longca.parallel.local import LocalKernel, Setting
from longca.parallel.mechanism import Mechanism
from longca.parallel.registry import load_mechanism
from longca.parallel.sharding import shard_sequence


def make_setting(case: Case, mask: Mask, kernel: LocalKernel, device: torch.device) -> Setting:
    """The mask dealt to the shards of the case's ring, and the shapes."""
    assert case.arrangement is not None
    scheme, ring = case.arrangement.sharding, case.arrangement.topology.ring
    sharding = shard_sequence(scheme, ring, mask.seqlen, mask.slices, mask.documents or None)
    shape = (case.q_heads, case.kv_heads, case.head_dim, getattr(torch, case.dtype), device)
    return Setting(mask.slices, sharding, *shape, kernel)


def make_mechanism(arrangement: Arrangement, groups: Groups, setting: Setting) -> Mechanism:
    """The mechanism with its plans. Raises UnsupportedError for heads, chunks or a part of a mask it cannot take."""
    try:
        return Mechanism(load_mechanism(arrangement.mechanism), groups, setting, arrangement.head_chunks)
    except LongcaError as error:  # chunks that do not divide the heads of a rank
        raise UnsupportedError(str(error)) from error
