"""On what machines the records were measured."""

from typing import Any

from longca.reporting.parts.part import ReportData
from longca.reporting.provenance import machines


def machine_facts(data: ReportData) -> dict[str, Any]:
    """What the records of each device say of it."""
    return {"machines": machines(data.measured)}
