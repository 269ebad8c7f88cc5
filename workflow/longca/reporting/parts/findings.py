"""What the records say, in sentences."""

from typing import Any

from longca.reporting.findings import fastest, refusals
from longca.reporting.flips import flips
from longca.reporting.mechanism_findings import mechanism_findings
from longca.reporting.parts.part import ReportData
from longca.reporting.sparse_findings import paper_order


def findings(data: ReportData) -> dict[str, Any]:
    """Findings of each family, those without a sentence left out."""
    found = paper_order(data.cells.get("sparse", []))
    found += [finding for cells in data.cells.values() for finding in (*fastest(cells), *flips(cells), refusals(cells))]
    found += mechanism_findings(data.rows["context_parallel"]) if "context_parallel" in data.rows else []
    return {"findings": [finding for finding in found if finding.sentences]}
