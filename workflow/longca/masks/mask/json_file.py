"""The file of a mask: one line of JSON, held against its pattern when it is read."""

import json
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from longca.errors import LongcaError
from longca.masks.mask.drawing import check_dataset
from longca.masks.mask.mask import Mask
from longca.masks.patterns.choices import check_documents, check_parameters, find_pattern
from longca.masks.problems import first_problem
from longca.masks.slices import area


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
        raise LongcaError(f"{path}: {first_problem(error)}") from error
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
    check_dataset(pattern, content.dataset)
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
