"""The grid of context parallelism: mechanisms over numbers of ranks, and how their cases are spread."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from longca.errors import LongcaError
from longca.names import unknown_name
from longca.parallel.topology import TOPOLOGY_TEXT, parse_topology
from longca.study.axes import Axis, Count, DatasetName, LocalKernels, Mechanisms, Patterns, Shardings
from longca.study.grids import Shape
from longca.study.units import Tokens

TopologyText = Annotated[str, Field(pattern=TOPOLOGY_TEXT)]


class ContextParallelGrid(Shape):
    """Mechanisms over numbers of ranks, at fixed numbers of tokens a rank."""

    mechanisms: Mechanisms
    """how attention is spread over ranks; on one rank there is only `single`"""
    kernels: LocalKernels
    """what computes on a rank: family context_parallel of `longca kernels`"""
    patterns: Patterns
    """names of static patterns"""
    world_sizes: Annotated[tuple[Count, ...], Axis()]
    """ranks: GPUs, or processes on a CPU"""
    tokens_per_rank: Annotated[tuple[Tokens, ...], Axis()]
    """a sequence has this many times the ranks; k is 1024"""
    datasets: Annotated[tuple[DatasetName, ...], Axis()] = ("prolong512k_long",)
    """where document lengths come from; 60 % of the tokens of a *_long one are documents of 8k to 30k tokens"""
    topologies: dict[Literal["usp", "loongtrain"], Annotated[tuple[TopologyText, ...], Axis()]] = Field(
        default_factory=dict
    )
    """U x R of usp and loongtrain, as 2x4, with loongtrain's windows 2x4x2; where none fits, U fills a node"""
    placement: Literal["ulysses", "ring"] = "ulysses"
    """whose ranks are neighbours and so inside a node: those that divide heads, or those of a ring"""
    shardings: Shardings = ("balanced",)
    """how a sequence is dealt to the shards of a ring"""
    pattern_shardings: dict[str, Shardings] = Field(default_factory=dict)
    """for a pattern, other shardings than `shardings`"""
    head_chunks: Annotated[tuple[Count, ...], Axis()] = (1,)
    """chunks of a rank's heads, each exchanged under the attention of the one before, where U is above 1"""
    gpus_per_node: Count = 8
    """GPUs of one host"""

    @model_validator(mode="after")
    def _shardings_are_of_the_grid(self) -> "ContextParallelGrid":
        for pattern in self.pattern_shardings:
            if pattern not in self.patterns:
                what = unknown_name(pattern, self.patterns, "pattern of this grid")
                raise ValueError(f"pattern_shardings: {what}")
        return self

    @model_validator(mode="after")
    def _topologies_are_of_the_grid(self) -> "ContextParallelGrid":
        for mechanism, texts in self.topologies.items():
            for text in texts:
                try:
                    ranks = parse_topology(text, mechanism).world_size
                except LongcaError as error:
                    raise ValueError(f"topologies.{mechanism}: {error}") from None
                if ranks not in self.world_sizes:
                    sizes = ", ".join(map(str, self.world_sizes))
                    raise ValueError(
                        f"topologies.{mechanism}: {text} is for {ranks} ranks; allowed: one of {sizes}"
                    )
        return self
