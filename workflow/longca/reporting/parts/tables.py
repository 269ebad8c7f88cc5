"""Every table, as people read it."""

from typing import Any

from longca.reporting.parts.part import ReportData
from longca.reporting.tables import sections_of
from longca.reporting.words import words


def tables(data: ReportData) -> dict[str, Any]:
    """The sections of each table of the study."""
    contents = [(f"table-{name}", words(name)) for name in data.rows]
    return {
        "tables": {name: sections_of(name, rows) for name, rows in data.rows.items()},
        "contents": contents,
    }
