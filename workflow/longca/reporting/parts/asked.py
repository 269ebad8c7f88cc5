"""What was asked: the study's config."""

from typing import Any

import yaml

from longca.reporting.parts.part import ReportData
from longca.reporting.words import words


def asked(data: ReportData) -> dict[str, Any]:
    """The study's config part by part, as YAML with every default spelt out."""
    sections = data.study.model_dump(mode="json", exclude_none=True)
    return {
        "asked": {
            words(name): yaml.safe_dump(value, sort_keys=False, default_flow_style=None, width=88)
            .strip()
            .removesuffix("\n...")
            for name, value in sections.items()
            if name != "study" and value not in ({}, [])
        }
    }
