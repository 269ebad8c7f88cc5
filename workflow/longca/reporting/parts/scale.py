"""Which mechanism carries a mask how far: the cost model's answer, marked as modelled, and how far it is off."""

from typing import Any

from longca.reporting.parts.part import ReportData
from longca.reporting.scale.sections import error_sentence, scale_findings


def scale(data: ReportData) -> dict[str, Any] | None:
    """The best mechanism and topology for each pattern and cluster; None where nothing is projected."""
    findings = scale_findings(data.rows.get("projection", []))
    if not findings:
        return None
    checks = data.rows["cost_model"]
    return {
        "findings": findings,
        "errors": [
            (words, error_sentence([row["ratio"] for row in checks if row["what"] == what]))
            for what, words in (
                ("left out", "Points of this study that the fit did not see"),
                ("published", "Published figures of 8 to 64 H100, to which nothing is fitted"),
            )
        ],
    }
