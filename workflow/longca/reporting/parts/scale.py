"""Which mechanism carries a mask how far: the cost model's answer, marked as modelled, and how far it is off."""

from typing import Any

from longca.reporting.parts.part import ReportData
from longca.reporting.scale.level import median_error
from longca.reporting.scale.sections import error_sentence, scale_findings


def scale(data: ReportData) -> dict[str, Any] | None:
    """The best mechanism and topology for each pattern and cluster; None where nothing is projected."""
    checks = data.rows.get("cost_model", [])
    error = median_error([row["ratio"] for row in checks if row["what"] == "left out"])
    findings = scale_findings(data.rows.get("projection", []), error)
    if not findings:
        return None
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
