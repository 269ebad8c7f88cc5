"""Columns of a record that have several values of their own, and the numbers that any column may hold: all finite."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

# Counts are exact as doubles, which what is computed from them is.
_MOST = 2**53
Count = Annotated[int, Field(ge=1, le=_MOST)]
Whole = Annotated[int, Field(ge=0, le=_MOST)]
Milliseconds = Annotated[float, Field(gt=0)]
NotNegative = Annotated[float, Field(ge=0)]
STRICT = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Latency(BaseModel):
    """Quantiles of the samples, in milliseconds."""

    model_config = STRICT
    p20: Milliseconds
    p50: Milliseconds
    p80: Milliseconds


class RankLatency(BaseModel):
    """Medians of the ranks, in milliseconds: of the fastest, the mean, of the slowest."""

    model_config = STRICT
    min: Milliseconds
    mean: Milliseconds
    max: Milliseconds


class TopologyColumns(BaseModel):
    """How ranks are arranged, as parallel.Topology has it."""

    model_config = STRICT
    ulysses: Count
    ring: Count
    windows: Count
    placement: Literal["ulysses", "ring"]
