"""Which sources and versions the records come from."""

from typing import Any

from longca.reporting.parts.part import ReportData
from longca.reporting.provenance import fingerprints


def provenance(data: ReportData) -> dict[str, Any]:
    """The fingerprints of every source that was measured."""
    return {"fingerprints": fingerprints(data.measured)}
