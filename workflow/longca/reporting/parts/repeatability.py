"""Whether the runs of the study compare."""

from typing import Any

from longca.reporting.parts.part import ReportData
from longca.reporting.repeatability import comparability


def repeatability(data: ReportData) -> dict[str, Any] | None:
    """Controls and cells measured twice; None where the study has neither."""
    sentences, sections = comparability(data.study)
    return {"sentences": sentences, "sections": sections} if sections else None
