"""Numbers with units as fields of the study model."""

from typing import Annotated

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

from longca.units import Heads, parse_duration, parse_heads, parse_tokens

# What a person may write; the model itself holds whole tokens, seconds and pairs of heads.
_TOKENS_SCHEMA = {
    "anyOf": [{"type": "integer", "minimum": 1}, {"type": "string", "pattern": "^[0-9]+[kM]?$"}]
}
_DURATION_SCHEMA = {"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)?[smh]$"}
OPTIONAL_DURATION_SCHEMA = {"anyOf": [_DURATION_SCHEMA, {"type": "null"}]}
_HEADS_SCHEMA = {"type": "string", "pattern": "^[1-9][0-9]*-[1-9][0-9]*$"}

Tokens = Annotated[int, BeforeValidator(parse_tokens), WithJsonSchema(_TOKENS_SCHEMA)]
Duration = Annotated[
    float,
    BeforeValidator(parse_duration),
    PlainSerializer(lambda seconds: f"{seconds:g}s"),
    WithJsonSchema(_DURATION_SCHEMA),
]
HeadsField = Annotated[
    Heads, BeforeValidator(parse_heads), PlainSerializer(str), WithJsonSchema(_HEADS_SCHEMA)
]
