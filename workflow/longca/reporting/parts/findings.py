"""What the records say, in sentences."""

from typing import Any

from longca.reporting.cells import WITHIN_SPREAD
from longca.reporting.findings import fastest, refusals
from longca.reporting.flips import flips
from longca.reporting.mechanism_findings import mechanism_findings
from longca.reporting.parts.part import ReportData
from longca.reporting.sparse_findings import paper_order


def findings(data: ReportData) -> dict[str, Any]:
    """Findings of each family, why something has no number last; those without a sentence are left out."""
    families = list(data.cells.values())
    found = [finding for cells in families for finding in (*fastest(cells), *flips(cells))]
    found += mechanism_findings(data.rows["context_parallel"]) if "context_parallel" in data.rows else []
    found += paper_order(data.cells.get("sparse", []))
    found += [refusals(cells) for cells in families]
    return {
        "findings": [finding for finding in found if finding.sentences],
        "within_spread": WITHIN_SPREAD,
    }
