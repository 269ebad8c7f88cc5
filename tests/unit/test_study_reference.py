"""What is derived from the study model: schema and table of keys, in step with the files that hold them."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from longca.study.reference import key_table, study_schema


def validate(study: dict[str, Any]) -> None:
    jsonschema.validate(study, study_schema(), jsonschema.Draft202012Validator)


def test_the_schema_file_is_the_models(repository: Path) -> None:
    written = json.loads((repository / "config" / "schema.json").read_text())
    assert written == study_schema(), "config/schema.json is old; right: longca schema > config/schema.json"


def test_the_table_of_keys_is_the_models(repository: Path) -> None:
    readme = (repository / "config" / "README.md").read_text()
    assert key_table() in readme, (
        "config/README.md is old; right: the table of `longca schema --format markdown`"
    )


@pytest.mark.parametrize("name", ["smoke", "h200", "h200x8", "test/h200x8", "paper"])
def test_the_schema_takes_the_studies_that_come_along(repository: Path, name: str) -> None:
    validate(yaml.safe_load((repository / "config" / f"{name}.yaml").read_text()))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("seqlens", ["8kb"]),
        ("seqlens", []),
        ("patterns", ["casual"]),
        ("patterns", "some"),
        ("heads", ["64:8"]),
        ("seqlen", [512]),
        ("dtype", "bf16"),
    ],
)
def test_the_schema_refuses_what_the_model_refuses(repository: Path, key: str, value: object) -> None:
    study = yaml.safe_load((repository / "config" / "smoke.yaml").read_text())
    study["dense"][key] = value
    with pytest.raises(jsonschema.ValidationError):
        validate(study)


def test_every_key_has_a_meaning() -> None:
    rows = [row.strip("| ").split(" | ") for row in key_table().splitlines()[2:]]
    assert [row[0] for row in rows if len(row) != 4 or not row[3]] == []
    assert "`dense.kernel_seqlens`" in [row[0] for row in rows]
    assert "`datasets.<name>.layout`" in [row[0] for row in rows]
