"""A mask: its slices, and all that is needed to draw them again."""

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from longca.data.histogram import Histogram, published_histogram
from longca.data.packing import base_dataset, resolve_dataset, sample_documents
from longca.errors import LongcaError
from longca.masks.patterns.choices import check_documents, check_parameters, complete_parameters, find_pattern
from longca.masks.slices import Slice, area, slices_digest

AUTO = "auto"


@dataclass(frozen=True)
class Mask:
    """One sample of a static pattern: `seqlen` queries against as many keys.

    documents: lengths in tokens, None where the pattern has none. parameters: every parameter the pattern
    takes. slices share no kept cell.
    """

    pattern: str
    seqlen: int
    dataset: str
    seed: int
    sample: int
    documents: tuple[int, ...] | None
    parameters: dict[str, int]
    slices: tuple[Slice, ...]

    @cached_property
    def area(self) -> int:
        """Cells kept."""
        return area(self.slices)

    @property
    def density(self) -> float:
        """Share of the seqlen x seqlen cells kept."""
        return self.area / self.seqlen**2

    @cached_property
    def digest(self) -> str:
        """sha256 (hex) of the kept cells: masks that keep the same cells share it."""
        return slices_digest(self.slices, self.seqlen, self.seqlen)


def draw_mask(
    pattern: str,
    seqlen: int,
    dataset: str = AUTO,
    histogram: Histogram | None = None,
    seed: int = 42,
    sample: int = 0,
    parameters: Mapping[str, int] | None = None,
    documents: Sequence[int] | None = None,
    context_parallel: bool = False,
) -> Mask:
    """Draw sample number `sample` of a pattern from one random.Random(seed + sample).

    Documents are drawn first where the pattern takes them, then the pattern's own draws. `documents` are
    taken as they are, without a draw. `parameters` override the defaults and the draws. `histogram` None is
    the published one of the dataset that `dataset` resolves to (with `context_parallel`, `auto` resolves to
    the long samples).

    Raises:
        LongcaError: for an unknown pattern, dataset or parameter, or a value the pattern cannot take.
    """
    known = find_pattern(pattern)
    if seqlen < 1:
        raise LongcaError(f"seqlen {seqlen}: must be at least 1")
    if sample < 0:
        raise LongcaError(f"sample {sample}: must be 0 or more")
    _check_dataset(pattern, dataset)
    chosen = complete_parameters(known, parameters or {})
    rng = random.Random(seed + sample)
    drawn: tuple[int, ...] = ()
    if documents is not None:
        check_documents(known, documents, seqlen)
        drawn = tuple(documents)
    elif known.takes_documents:
        resolved = resolve_dataset(dataset, seqlen, context_parallel)
        if histogram is None:
            histogram = published_histogram(base_dataset(resolved))
        drawn = tuple(sample_documents(rng, resolved, histogram, seqlen))
    drawn, chosen = known.draw(rng, seqlen, drawn, chosen)
    return Mask(
        pattern=pattern,
        seqlen=seqlen,
        dataset=dataset,
        seed=seed,
        sample=sample,
        documents=drawn if known.has_documents else None,
        parameters={name: chosen[name] for name in known.parameters},
        slices=tuple(known.build(seqlen, drawn, chosen)),
    )


def mask_to_json(mask: Mask) -> str:
    """The mask file: one line of JSON. `documents` is empty where the pattern has none."""
    return json.dumps(
        {
            "pattern": mask.pattern,
            "seqlen": mask.seqlen,
            "dataset": mask.dataset,
            "seed": mask.seed,
            "sample": mask.sample,
            "documents": mask.documents or (),
            "parameters": mask.parameters,
            "slices": mask.slices,
            "area": mask.area,
        }
    )


def read_mask(path: Path) -> Mask:
    """Read a mask file and hold it against what its pattern, documents and parameters build.

    Raises:
        LongcaError: one line with the file and the key, for a file that is no such JSON or was edited by
        hand.
    """
    try:
        content = _MaskFile.model_validate_json(path.read_bytes())
    except OSError as error:
        raise LongcaError(f"{path}: cannot be read: {error.strerror}") from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise LongcaError(f"{path}: {f'key {place}: ' if place else ''}{first['msg']}") from error
    try:
        return _rebuild(content)
    except LongcaError as error:
        raise LongcaError(f"{path}: {error}") from error


class _MaskFile(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    pattern: str
    seqlen: Annotated[int, Field(ge=1)]
    dataset: str
    seed: int
    sample: Annotated[int, Field(ge=0)]
    documents: list[int]
    parameters: dict[str, int]
    slices: list[tuple[int, int, int, int, Literal["full", "causal", "inv_causal", "bi_causal"]]]
    area: int


def _rebuild(content: _MaskFile) -> Mask:
    pattern = find_pattern(content.pattern)
    _check_dataset(content.pattern, content.dataset)
    check_parameters(pattern, content.parameters)
    for name in pattern.parameters:
        if name not in content.parameters:
            raise LongcaError(f"key parameters: lacks {name}, which {pattern.name} takes")
    if content.documents or pattern.has_documents:
        check_documents(pattern, content.documents, content.seqlen)
    documents = tuple(content.documents)
    slices = tuple(pattern.build(content.seqlen, documents, content.parameters))
    if len(content.slices) != len(slices):
        raise LongcaError(
            f"key slices: {len(content.slices)} slices; {pattern.name} builds {len(slices)} here"
        )
    for number, (found, right) in enumerate(zip(content.slices, slices, strict=True)):
        if found != right:
            raise LongcaError(f"key slices.{number}: {list(found)}; {pattern.name} builds {list(right)} here")
    if content.area != area(slices):
        raise LongcaError(f"key area: {content.area}; the slices keep {area(slices)} cells")
    return Mask(
        pattern=content.pattern,
        seqlen=content.seqlen,
        dataset=content.dataset,
        seed=content.seed,
        sample=content.sample,
        documents=documents if pattern.has_documents else None,
        parameters={name: content.parameters[name] for name in pattern.parameters},
        slices=slices,
    )


def _check_dataset(pattern: str, dataset: str) -> None:
    if dataset != AUTO and not find_pattern(pattern).takes_documents:
        raise LongcaError(
            f"dataset {dataset!r}: {pattern} takes no sampled documents and exists under {AUTO} only"
        )
