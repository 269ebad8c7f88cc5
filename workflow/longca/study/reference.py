"""What a config may say, derived from the model: a JSON schema for editors, a table of keys for people."""

import json
from collections.abc import Iterator
from typing import Any

from longca.study.model import Study

Schema = dict[str, Any]

_SCALARS = {"integer": "whole number", "number": "number", "string": "text", "boolean": "true or false"}


def study_schema() -> Schema:
    """The JSON schema (draft 2020-12) of a study's config file."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **Study.model_json_schema()}
    return json.loads(json.dumps(schema))  # tuples of defaults become lists


def key_table() -> str:
    """A Markdown table of all keys: what they take, their default, their meaning with its unit."""
    schema = study_schema()
    rows = ["| key | takes | default | meaning |", "|---|---|---|---|"]
    for key, spec, required in _keys(schema, schema, ""):
        default = "required" if required else _default(spec)
        meaning = " ".join(spec.get("description", "").split())
        rows.append(f"| `{key}` | {_takes(spec, schema)} | {default} | {meaning} |")
    return "\n".join(rows) + "\n"


def _keys(section: Schema, schema: Schema, prefix: str) -> Iterator[tuple[str, Schema, bool]]:
    for name, spec in section["properties"].items():
        key = f"{prefix}{name}"
        yield key, spec, name in section.get("required", ())
        for inner, step in ((spec, "."), (_entries(spec), ".<name>.")):
            keys = _section(inner, schema)
            if keys:
                yield from _keys(keys, schema, key + step)


def _entries(spec: Schema) -> Any:
    """What stands behind each name of a mapping."""
    named = list(spec.get("patternProperties", {}).values())
    return named[0] if named else spec.get("additionalProperties")


def _section(spec: Any, schema: Schema) -> Schema | None:
    """The section of the config that a reference, or one of several choices, leads to."""
    if not isinstance(spec, dict):
        return None
    for choice in (spec, *spec.get("anyOf", ())):
        if "$ref" in choice:
            return schema["$defs"][choice["$ref"].rpartition("/")[2]]
    return None


def _default(spec: Schema) -> str:
    value = spec.get("default")
    if isinstance(value, dict) or "$ref" in spec or spec.get("type") == "object":
        return ""
    if value is None or value == []:
        return "none"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"  # as YAML has it
    return f"`{', '.join(map(str, value)) if isinstance(value, list) else value}`"


def _takes(spec: Schema, schema: Schema) -> str:
    if _section(spec, schema):
        listed = any(choice.get("type") == "array" for choice in spec.get("anyOf", ()))
        return "section, or list of them" if listed else "section"
    if "const" in spec:
        return f"`{spec['const']}`"
    if "enum" in spec:
        return ", ".join(f"`{value}`" for value in spec["enum"])
    if "anyOf" in spec:
        choices = [choice for choice in spec["anyOf"] if choice.get("type") != "null"]
        return " or ".join(_takes(choice, schema) for choice in choices)
    if spec.get("type") == "array":
        return f"list of: {_takes(spec['items'], schema)}"
    if spec.get("type") == "object":
        return f"names, each with a {_takes(_entries(spec), schema)}"
    return _SCALARS[spec["type"]] + _bounds(spec)


def _bounds(spec: Schema) -> str:
    if "pattern" in spec:
        return f" `{spec['pattern']}`"
    words = {"minimum": "from", "exclusiveMinimum": "above", "maximum": "to"}
    return "".join(f" {word} {spec[name]}" for name, word in words.items() if name in spec)
