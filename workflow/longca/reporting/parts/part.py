"""A part of the report, and what all parts are made from."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from longca.reporting.cells import Cell, cells_of
from longca.reporting.long import Row
from longca.reporting.names import families
from longca.study.model import Study


@dataclass(frozen=True)
class ReportData:
    """A study, its config file as commands name it, and the long rows of each of its tables by name."""

    study: Study
    config: Path
    rows: Mapping[str, list[Row]]

    @cached_property
    def measured(self) -> list[Row]:
        """The rows of every case of every family, those not measured yet included."""
        return [row for family in families(self.study) for row in self.rows[family]]

    @cached_property
    def cells(self) -> dict[str, list[Cell]]:
        """The cells of each family of kernels on one device."""
        return {name: cells_of(self.rows[name]) for name in ("dense", "sparse") if name in self.rows}


@dataclass(frozen=True)
class Part:
    """A part: its anchor and template name, its heading, and what gives its template the values it names.

    `values` returns None where this study has nothing to say here, and the part is left out. Its value
    `contents` is a list of (anchor, label): entries below the part in the contents list.
    """

    id: str
    heading: str
    values: Callable[[ReportData], dict[str, Any] | None]
