"""The axes of a grid: lists of names or values, never empty, nothing in them twice."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from annotated_types import GroupedMetadata
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from longca.data.corpus import DATASET_NAME
from longca.kernels.registry import kernel_names
from longca.masks.patterns import DYNAMIC_PATTERNS, PATTERNS
from longca.names import unknown_name
from longca.parallel.registry import MECHANISMS

SHARDINGS = ("contiguous", "zigzag", "document_zigzag", "balanced")
PASSES = ("forward", "backward")


class Strict(BaseModel):
    """A part of the config: unknown keys and wrong types are refused, never guessed."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, use_attribute_docstrings=True)


def _filled(values: tuple[Any, ...]) -> tuple[Any, ...]:
    if not values:
        raise ValueError("is empty; right: at least one value")
    twice = next((value for value in values if values.count(value) > 1), None)
    if twice is not None:
        raise ValueError(f"{twice} stands there twice; right: every value once")
    return values


class Axis(GroupedMetadata):
    """On a tuple's type: given as a list of values."""

    def __iter__(self) -> Iterator[object]:
        # Strict models take YAML's lists for no tuples.
        yield BeforeValidator(lambda value: tuple(value) if isinstance(value, list) else value)
        yield AfterValidator(_filled)
        yield Field(json_schema_extra={"minItems": 1, "uniqueItems": True})


@dataclass(frozen=True)
class Names(GroupedMetadata):
    """On a tuple's type: given as a list of names out of `allowed()`, or the word all.

    open_ended: other packages may add names, so that a schema cannot list them.
    """

    allowed: Callable[[], Sequence[str]]
    what: str
    open_ended: bool = False

    def __iter__(self) -> Iterator[object]:
        yield BeforeValidator(self._known)
        yield AfterValidator(_filled)
        name = {"type": "string"} if self.open_ended else {"enum": list(self.allowed())}
        names = {"type": "array", "items": name, "minItems": 1, "uniqueItems": True}
        yield WithJsonSchema({"anyOf": [{"const": "all"}, names]})

    def _known(self, value: object) -> object:
        if value == "all":
            return tuple(self.allowed())
        if not isinstance(value, list | tuple):
            raise ValueError(f"{value!r} is no list; allowed: a list of {self.what} names, or the word all")
        for name in value:
            if name not in self.allowed():
                raise ValueError(unknown_name(name, self.allowed(), self.what))
        return tuple(value)


@dataclass(frozen=True)
class Name(GroupedMetadata):
    """On a text: one name out of `allowed()`; open_ended as in Names."""

    allowed: Callable[[], Sequence[str]]
    what: str
    open_ended: bool = False

    def __iter__(self) -> Iterator[object]:
        yield AfterValidator(self._known)
        if not self.open_ended:
            yield WithJsonSchema({"enum": list(self.allowed())})

    def _known(self, name: str) -> str:
        if name not in self.allowed():
            raise ValueError(unknown_name(name, self.allowed(), self.what))
        return name


DenseKernel = Annotated[str, Name(lambda: kernel_names("dense"), "dense kernel", open_ended=True)]
Pattern = Annotated[str, Name(lambda: tuple(PATTERNS), "pattern")]
Patterns = Annotated[tuple[str, ...], Names(lambda: tuple(PATTERNS), "pattern")]
SparsePatterns = Annotated[tuple[str, ...], Names(lambda: DYNAMIC_PATTERNS, "block-sparse pattern")]
Mechanisms = Annotated[tuple[str, ...], Names(lambda: tuple(MECHANISMS), "mechanism")]
Shardings = Annotated[tuple[str, ...], Names(lambda: SHARDINGS, "sharding")]
Passes = Annotated[tuple[str, ...], Names(lambda: PASSES, "pass")]
DenseKernels = Annotated[
    tuple[str, ...], Names(lambda: kernel_names("dense"), "dense kernel", open_ended=True)
]
LocalKernels = Annotated[
    tuple[str, ...],
    Names(lambda: kernel_names("context_parallel"), "context-parallel kernel", open_ended=True),
]
SparseKernels = Annotated[
    tuple[str, ...], Names(lambda: kernel_names("sparse"), "block-sparse kernel", open_ended=True)
]

DType = Literal["float32", "float16", "bfloat16"]
Count = Annotated[int, Field(ge=1)]
Density = Annotated[float, Field(gt=0, le=1, strict=False)]
DatasetName = Annotated[str, Field(pattern=DATASET_NAME)]
