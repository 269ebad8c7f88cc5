"""The grids of a study: which cases each family of kernels is measured on."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

from annotated_types import GroupedMetadata
from pydantic import BeforeValidator, Field, SerializerFunctionWrapHandler, WrapSerializer, model_validator

from longca.masks.blocks.drawing import SMALLEST_VARIABLE_BLOCK
from longca.names import unknown_name
from longca.study.axes import PASSES as BOTH_PASSES
from longca.study.axes import (
    Axis,
    Count,
    DatasetName,
    DenseKernels,
    Density,
    DType,
    Passes,
    Patterns,
    SparseKernels,
    SparsePatterns,
    Strict,
)
from longca.study.units import HeadsField, Tokens


@dataclass(frozen=True)
class OneOrSeveral(GroupedMetadata):
    """On a tuple of grids: given as one grid or a list of them, the most valuable first."""

    def __iter__(self) -> Iterator[object]:
        yield BeforeValidator(_as_grids)
        # As a person writes it: one grid is no list.
        yield WrapSerializer(_without_list_of_one)
        yield Field(json_schema_extra=_one_or_list)


def _as_grids(value: object) -> object:
    if value is None:
        return ()
    if isinstance(value, list) and not value:
        raise ValueError("is empty; right: at least one grid")
    return tuple(value) if isinstance(value, list | tuple) else (value,)


def _without_list_of_one(grids: Any, dump: SerializerFunctionWrapHandler) -> Any:
    dumped = dump(grids)
    return dumped[0] if len(dumped) == 1 else dumped


def _one_or_list(schema: dict[str, Any]) -> None:
    items = schema.pop("items")
    del schema["type"]
    several = {"type": "array", "items": items, "minItems": 1}
    schema["anyOf"] = [items, several, {"type": "null"}]


class Shape(Strict):
    """What every family asks of its tensors."""

    heads: Annotated[tuple[HeadsField, ...], Axis()]
    """query heads - key-value heads, each as `64-8`"""
    head_dim: Count = 128
    """elements a head"""
    dtype: DType = "bfloat16"
    """of q, k, v and the output's gradient"""
    passes: Passes = BOTH_PASSES
    """what is timed, each by itself"""
    samples: Count = 1
    """masks a length, one where nothing of a pattern is drawn: sample n is from seed + n"""


class DenseGrid(Shape):
    """Dense kernels over the static patterns."""

    kernels: DenseKernels
    """names, see `longca kernels`"""
    patterns: Patterns
    """names of static patterns"""
    seqlens: Annotated[tuple[Tokens, ...], Axis()]
    """tokens a sequence; k is 1024, M is 1024 k"""
    datasets: Annotated[tuple[DatasetName, ...], Axis()] = ("auto",)
    """where document lengths come from; auto is pile to 12k, prolong64k to 64k, prolong512k above"""
    kernel_seqlens: dict[str, Annotated[tuple[Tokens, ...], Axis()]] = Field(default_factory=dict)
    """fewer lengths for a kernel: its name and tokens out of `seqlens`"""

    @model_validator(mode="after")
    def _kernel_seqlens_are_of_the_grid(self) -> "DenseGrid":
        for kernel, seqlens in self.kernel_seqlens.items():
            if kernel not in self.kernels:
                raise ValueError(
                    f"kernel_seqlens: {unknown_name(kernel, self.kernels, 'kernel of this grid')}"
                )
            for seqlen in seqlens:
                if seqlen not in self.seqlens:
                    lengths = ", ".join(map(str, self.seqlens))
                    raise ValueError(
                        f"kernel_seqlens.{kernel}: {seqlen} is not of the grid; allowed: {lengths}"
                    )
        return self


class SparseGrid(Shape):
    """Block-sparse kernels over the dynamic patterns."""

    kernels: SparseKernels
    """names, see `longca kernels`"""
    patterns: SparsePatterns
    """names of dynamic patterns"""
    seqlens: Annotated[tuple[Tokens, ...], Axis()]
    """tokens a sequence; k is 1024, M is 1024 k"""
    blocks: dict[str, Annotated[tuple[Count, ...], Axis()]]
    """for each pattern its block sizes in tokens; of variable_block the average ones, 128 or more"""
    densities: Annotated[tuple[Density, ...], Axis()]
    """share of blocks kept, above 0 and up to 1"""

    @model_validator(mode="after")
    def _every_pattern_has_blocks(self) -> "SparseGrid":
        if set(self.blocks) != set(self.patterns):
            raise ValueError(
                f"blocks: has {', '.join(sorted(self.blocks)) or 'nothing'}; "
                f"right: block sizes for each of the patterns {', '.join(sorted(self.patterns))}"
            )
        return self

    @model_validator(mode="after")
    def _variable_blocks_have_room(self) -> "SparseGrid":
        for pattern, blocks in self.blocks.items():
            for block in blocks:
                if pattern == "variable_block" and block < SMALLEST_VARIABLE_BLOCK:
                    raise ValueError(
                        f"blocks.{pattern}: {block} is too small; right: {SMALLEST_VARIABLE_BLOCK} or more"
                    )
        return self
