"""Writing a study's tables: the long forms for programs, the reading forms for people."""

from collections.abc import Callable, Mapping, Sequence
from itertools import chain

import pyarrow as pa

from longca.errors import LongcaError
from longca.files import write_atomically
from longca.names import unknown_name
from longca.reporting.cells import cells_of
from longca.reporting.collect import CaseRecord, collect
from longca.reporting.expected import ANCHOR_COLUMNS, anchor_rows, anchor_sections
from longca.reporting.latex import latex
from longca.reporting.long import Row, csv_text, long_row, long_table, parquet_bytes, table_of
from longca.reporting.markdown import markdown
from longca.reporting.mechanism_sections import mechanism_sections
from longca.reporting.names import families, results_of, table_file, tables_of
from longca.reporting.scale.sections import cost_model_sections, projection_sections
from longca.reporting.scale.tables import (
    COST_MODEL_COLUMNS,
    PROJECTION_COLUMNS,
    cost_model_rows,
    projection_rows,
)
from longca.reporting.sections import Section, throughput_sections
from longca.reporting.sparse_sections import sparse_sections
from longca.reporting.support import SUPPORT_COLUMNS, support_rows, support_sections
from longca.reporting.verification import VERIFICATION_COLUMNS, verification_rows, verification_sections
from longca.study.masks import study_masks
from longca.study.model import Study

Collected = Mapping[str, Sequence[CaseRecord]]
Sections = Callable[[Sequence[Row]], list[Section]]


def _throughput(rows: Sequence[Row]) -> list[Section]:
    return throughput_sections(cells_of(rows))


def _family_table(family: str) -> Callable[[Study, Collected], pa.Table]:
    return lambda study, collected: long_table(collected[family], family)


def _support(study: Study, collected: Collected) -> pa.Table:
    return table_of(support_rows(study, list(chain.from_iterable(collected.values()))), SUPPORT_COLUMNS)


def _verification(study: Study, collected: Collected) -> pa.Table:
    rows = [long_row(item) for items in collected.values() for item in items]
    return table_of(verification_rows(rows), VERIFICATION_COLUMNS)


def _anchors(study: Study, collected: Collected) -> pa.Table:
    cells = cells_of([long_row(item) for item in collected["dense"]])
    return table_of(anchor_rows(study, cells), ANCHOR_COLUMNS)


def _cost_model(study: Study, collected: Collected) -> pa.Table:
    return table_of(cost_model_rows(_on_ranks(collected)), COST_MODEL_COLUMNS)


def _projection(study: Study, collected: Collected) -> pa.Table:
    draw = study_masks(study, results_of(study)).draw
    return table_of(projection_rows(_on_ranks(collected), draw), PROJECTION_COLUMNS)


def _on_ranks(collected: Collected) -> list[Row]:
    return [long_row(item) for item in collected["context_parallel"]]


# What makes each table of TABLES: its long form of the cases of its families, and the sections for reading of that.
MADE_BY: dict[str, tuple[Callable[[Study, Collected], pa.Table], Sections]] = {
    "dense": (_family_table("dense"), _throughput),
    "sparse": (_family_table("sparse"), sparse_sections),
    "support": (_support, support_sections),
    "anchors": (_anchors, anchor_sections),
    "context_parallel": (_family_table("context_parallel"), mechanism_sections),
    "cost_model": (_cost_model, cost_model_sections),
    "projection": (_projection, projection_sections),
    "verification": (_verification, verification_sections),
}


def write_table(study: Study, name: str, partial: bool = False) -> None:
    """Write a table of `table_names(study)` in all its forms, from the study's record files.

    With `partial` a case without a record is `not measured`. Raises LongcaError for an unknown name and as
    `collect` does.
    """
    table = made_table(study, name, partial)
    write_atomically(table_file(study, name, "csv"), csv_text(table))
    write_atomically(table_file(study, name, "parquet"), parquet_bytes(table))
    shown = [column for column in table.column_names if column != "samples_ms"]
    sections = sections_of(name, table.select(shown).to_pylist())
    write_atomically(table_file(study, name, "md"), markdown(sections))
    write_atomically(table_file(study, name, "tex"), latex(sections))


def made_table(study: Study, name: str, partial: bool = False) -> pa.Table:
    """The long form of a table of `table_names(study)`. Raises LongcaError as `write_table` does."""
    known = {kind.name: kind for kind in tables_of(study)}
    if name not in known:
        raise LongcaError(unknown_name(name, known, f"table of study {study.study}"))
    read = [family for family in known[name].families if family in families(study)]
    collected = {family: collect(study, family, partial) for family in read}
    return MADE_BY[name][0](study, collected)


def sections_of(name: str, rows: Sequence[Row]) -> list[Section]:
    """The sections of a table, from its long rows."""
    return MADE_BY[name][1](rows)
