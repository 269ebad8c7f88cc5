"""What measuring cost."""

from typing import Any

from longca.reporting.overhead import overhead, read_jobs
from longca.reporting.parts.part import ReportData


def costs(data: ReportData) -> dict[str, Any]:
    """Sentences on the jobs' start and share of time spent measuring."""
    return {"overhead": overhead(read_jobs(data.study))}
