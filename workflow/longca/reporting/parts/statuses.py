"""What came of the cases: how many of each kernel came to each status."""

from collections import Counter
from typing import Any

from longca.reporting.parts.part import ReportData
from longca.reporting.words import SEVERITY


def statuses(data: ReportData) -> dict[str, Any]:
    """`kernels`: counts by (family, kernel); `total`; `seen`: the statuses there are, from good to bad; `cases`."""
    kernels: dict[tuple[str, str], Counter[str]] = {}
    for row in data.measured:
        kernels.setdefault((row["family"], row["kernel"]), Counter())[row["status"]] += 1
    total = sum(kernels.values(), Counter())
    seen = [status for status in reversed(SEVERITY) if total[status]]
    return {"seen": seen, "kernels": kernels, "total": total, "cases": len(data.measured)}
