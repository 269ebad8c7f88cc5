"""A case as flat columns, and which of them tell cases apart."""

from collections.abc import Sequence
from typing import Any

from longca.cases import Case
from longca.reporting.long import flatten

Columns = dict[str, Any]


def case_columns(case: Case) -> Columns:
    """The columns of a case, nested ones flattened as in tables."""
    flat: Columns = {}
    for name, value in case.columns().items():
        flatten(name, value, flat)
    return flat


def varying(rows: Sequence[Columns]) -> list[str]:
    """The names of columns that are not the same in all rows, in their order."""
    names = dict.fromkeys(name for row in rows for name in row)
    return [name for name in names if len({row.get(name) for row in rows}) > 1]
