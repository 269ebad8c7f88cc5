"""The cases of context parallelism, what they compute, and how each rank compares its part with the oracle."""

from dataclasses import dataclass
from functools import cache

import torch

from longca.kernels.oracle import attend, kept_rows
from longca.masks.mask import Mask, draw_mask
from longca.masks.patterns import PATTERNS
from longca.masks.slices import Slice
from longca.ops import segments
from longca.parallel.gather import gather
from longca.parallel.groups import Groups
from longca.parallel.local import Setting
from longca.parallel.mechanism import Mechanism
from longca.parallel.registry import load_mechanism
from longca.parallel.sharding import shard_sequence
from longca.parallel.shards import scatter
from longca.parallel.topology import Topology

PARAMETERS = {"window": 17, "global_tokens": 9, "block": 16}
# An odd length; documents of 1 token and of none, and none that divides by 2R.
SEQLEN, DOCUMENTS = 131, (37, 1, 0, 52, 41)
# Rows that keep nothing, and keys that nobody sees.
GAPS = (Slice(5, 40, 2, 30, "causal"), Slice(60, 61, 0, 131, "full"), Slice(90, 120, 80, 110, "inv_causal"))


@dataclass(frozen=True)
class Case:
    mechanism: str
    topology: Topology
    sharding: str
    pattern: str
    heads: tuple[int, int] = (4, 2)
    seqlen: int = SEQLEN
    dtype: str = "float32"
    head_chunks: int = 1

    @property
    def name(self) -> str:
        t = self.topology
        place = f"{t.ulysses}x{t.ring}w{t.windows}{t.placement[0]}"
        heads = f"{self.heads[0]}-{self.heads[1]}"
        return (
            f"{self.mechanism}:{place}:{self.sharding}:{self.pattern}:{heads}:{self.seqlen}"
            f":{self.dtype}:{self.head_chunks}"
        )


@cache
def mask_of(pattern: str, seqlen: int) -> Mask:
    if pattern == "gaps":
        return Mask("gaps", seqlen, "auto", 0, 0, None, {}, GAPS)
    known = PATTERNS[pattern]
    documents = None
    if known.has_documents:
        documents = DOCUMENTS if seqlen == SEQLEN else (seqlen // 3, seqlen - seqlen // 3)
    parameters = {name: PARAMETERS[name] for name in known.parameters if name in PARAMETERS}
    return draw_mask(pattern, seqlen, parameters=parameters, documents=documents)


@cache
def inputs_of(heads: tuple[int, int], seqlen: int, dtype: str, head_dim: int = 16) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(seqlen + heads[0])
    sizes = {"q": heads[0], "k": heads[1], "v": heads[1], "dout": heads[0]}
    return {
        name: torch.randn(count, seqlen, head_dim, generator=generator).to(getattr(torch, dtype))
        for name, count in sizes.items()
    }


@cache
def oracle_of(pattern: str, heads: tuple[int, int], seqlen: int, dtype: str) -> dict[str, torch.Tensor]:
    """out, lse, dq, dk, dv in float64, on one device."""
    x, (q_heads, kv_heads) = inputs_of(heads, seqlen, dtype), heads
    rows = kept_rows(mask_of(pattern, seqlen), 0, torch.device("cpu"))
    group = q_heads // kv_heads
    parts = []
    for h in range(kv_heads):
        mine = slice(h * group, (h + 1) * group)
        parts.append(attend(x["q"][mine], x["k"][h], x["v"][h], x["dout"][mine], rows))
    whole = {name: torch.cat([getattr(part, name) for part in parts]) for name in ("out", "lse", "dq")}
    return whole | {name: torch.stack([getattr(part, name) for part in parts]) for name in ("dk", "dv")}


def build(case: Case, groups: Groups, kernel=segments) -> Mechanism:
    mask, dtype = mask_of(case.pattern, case.seqlen), getattr(torch, case.dtype)
    sharding = shard_sequence(
        case.sharding, case.topology.ring, case.seqlen, mask.slices, mask.documents or None
    )
    setting = Setting(mask.slices, sharding, *case.heads, 16, dtype, torch.device("cpu"), kernel)
    return Mechanism(load_mechanism(case.mechanism), groups, setting, case.head_chunks)


def local_inputs(case: Case, mechanism: Mechanism) -> dict[str, torch.Tensor]:
    """Padding holds large values: whoever attends to it is found out."""
    local = {}
    for name, whole in inputs_of(case.heads, case.seqlen, case.dtype).items():
        local[name] = scatter(whole, mechanism.shard)
        padding = scatter(torch.ones_like(whole), mechanism.shard) == 0
        local[name][padding] = 7.0
    return local


def error(got: torch.Tensor, want: torch.Tensor) -> float:
    """Greatest difference over the greatest value, or over 0.1 where all are smaller: inputs are standard normal.

    Where both are -inf they agree; NaN stays NaN.
    """
    difference = torch.where(got.double() == want, 0.0, got.double() - want).abs()
    size = want[want.isfinite()].abs().max() if want.isfinite().any() else torch.tensor(1.0)
    return float(difference.max() / size.clamp(min=0.1)) if difference.numel() else 0.0


def run_cases(rank: int, cases: list[Case]) -> dict[str, dict[str, object]]:
    """Every case in turn, groups made once for each topology; by name: errors of whole tensors, bytes sent."""
    results = {}
    for topology in dict.fromkeys(case.topology for case in cases):
        with Groups(topology) as groups:
            for case in cases:
                if case.topology == topology:
                    results[case.name] = run_case(case, groups)
    return results


def run_case(case: Case, groups: Groups) -> dict[str, object]:
    mechanism = build(case, groups)
    x = local_inputs(case, mechanism)
    mechanism.traffic.clear()
    got = {"out": mechanism.forward(x["q"], x["k"], x["v"])}
    sent = {"forward": mechanism.traffic.total}
    mechanism.traffic.clear()
    got["dq"], got["dk"], got["dv"] = mechanism.backward(x["dout"])
    sent["backward"] = mechanism.traffic.total
    got["lse"] = mechanism.lse()
    want = oracle_of(case.pattern, case.heads, case.seqlen, case.dtype)
    errors = {
        name: error(gather(tensor, mechanism.setting.sharding, case.topology), want[name])
        for name, tensor in got.items()
    }
    return {"errors": errors, "sent": sent, "rows": mechanism.shard.rows}
