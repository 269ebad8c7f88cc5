"""A corpus as a study's `datasets` section, or a command's options, describe it."""

import re
from dataclasses import replace
from functools import cached_property
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from longca.data.histogram import PUBLISHED
from longca.data.layouts import ANY, LAYOUTS, Layout
from longca.data.packing import AUTO, LONG_SUFFIX
from longca.data.tokens import TOKENIZERS
from longca.errors import LongcaError
from longca.names import unknown_name

# What a dataset's name may be: it is part of file names.
DATASET_NAME = r"^[a-z0-9][a-z0-9_]*$"


class Corpus(BaseModel):
    """Where the documents of one dataset lie and how they are counted; either `files` or `hugging_face`."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    layout: str = Field(description=f"keys of its records: {', '.join(LAYOUTS)}")
    files: list[str] | None = Field(
        None, min_length=1, description="globs or folders, from the working directory"
    )
    hugging_face: str | None = Field(None, min_length=1, description="a data set's name on the hub: org/name")
    split: str = Field("train", min_length=1, description="split of the hub's data set")
    config: str | None = Field(None, description="configuration of the hub's data set")
    subsets: list[str] | None = Field(
        None, min_length=1, description="only these, by the name the records give"
    )
    column: str | None = Field(None, min_length=1, description="what is counted, in place of the layout's")
    tokenizer: str = Field("tekken", description=f"vocabulary: {', '.join(TOKENIZERS)}")
    bad_records: Literal["stop", "skip"] = Field(
        "stop", description="stop at a record that cannot be read, or skip"
    )

    @field_validator("layout")
    @classmethod
    def _known_layout(cls, value: str) -> str:
        if value not in LAYOUTS:
            raise ValueError(unknown_name(value, LAYOUTS, "layout"))
        return value

    @field_validator("tokenizer")
    @classmethod
    def _known_tokenizer(cls, value: str) -> str:
        if value not in TOKENIZERS:
            raise ValueError(unknown_name(value, TOKENIZERS, "tokenizer"))
        return value

    @model_validator(mode="after")
    def _fits_together(self) -> "Corpus":
        if (self.files is None) == (self.hugging_face is None):
            raise ValueError("give either files or hugging_face")
        misplaced = {"split", "config"} & self.model_fields_set
        if self.files is not None and misplaced:
            raise ValueError(f"{min(misplaced)} goes with hugging_face, not with files")
        if self.subsets is not None and LAYOUTS[self.layout].subset is None:
            having = ", ".join(name for name, layout in LAYOUTS.items() if layout.subset)
            raise ValueError(f"layout {self.layout} has no subsets; layouts with subsets are {having}")
        return self

    @cached_property
    def keys(self) -> Layout:
        """The layout by its name, with the corpus's own column where it names one."""
        layout = LAYOUTS[self.layout]
        return layout if self.column is None else replace(layout, columns={self.column: ANY})


def check_dataset_name(name: str) -> str:
    """A name for a study's own corpus, usable as a file name and unlike the names longca gives a meaning.

    Raises ValueError otherwise, which pydantic models turn into their own error.
    """
    if not re.fullmatch(DATASET_NAME, name):
        raise ValueError(f"dataset name {name!r}: use lower-case letters, digits and '_'")
    if name in (AUTO, *PUBLISHED) or name.endswith(LONG_SUFFIX):
        raise ValueError(
            f"dataset name {name!r}: {AUTO}, {', '.join(PUBLISHED)} and *{LONG_SUFFIX} are taken"
        )
    return name


def parse_corpus(name: str, entry: Any, place: str) -> Corpus:
    """Validate the entry of dataset `name`; raises LongcaError: `place`, key, value and what is allowed."""
    try:
        check_dataset_name(name)
        return Corpus.model_validate(entry)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"])
        message = first["msg"].removeprefix("Value error, ")
        if first["type"] == "extra_forbidden":
            message = unknown_name(key, Corpus.model_fields, "key")
        elif first["type"] not in ("missing", "value_error"):
            message = f"{message}, found {str(first['input'])[:60]!r}"
        where = f"{place}: {key}" if key else place
        raise LongcaError(f"{where}: {message}") from None
    except ValueError as error:
        raise LongcaError(f"{place}: {error}") from None
