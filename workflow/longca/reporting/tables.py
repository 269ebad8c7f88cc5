"""Writing a study's tables: the long forms for programs, the reading forms for people."""

from collections.abc import Sequence

import pyarrow as pa

from longca.errors import LongcaError
from longca.files import write_atomically
from longca.names import unknown_name
from longca.reporting.cells import cells_of
from longca.reporting.collect import collect
from longca.reporting.latex import latex
from longca.reporting.long import Row, csv_text, long_row, long_table, parquet_bytes, table_of
from longca.reporting.markdown import markdown
from longca.reporting.names import families, table_file, table_names
from longca.reporting.sections import Section, throughput_sections
from longca.reporting.support import SUPPORT_COLUMNS, support_rows, support_sections
from longca.reporting.verification import VERIFICATION_COLUMNS, verification_rows, verification_sections
from longca.study.model import Study


def write_table(study: Study, name: str, partial: bool = False) -> None:
    """Write a table of `table_names(study)` in all its forms, from the study's record files.

    With `partial` a case without a record is `not measured`. Raises LongcaError for an unknown name and as
    `collect` does.
    """
    if name not in table_names(study):
        raise LongcaError(unknown_name(name, table_names(study), f"table of study {study.study}"))
    table = _table(study, name, partial)
    write_atomically(table_file(study, name, "csv"), csv_text(table))
    write_atomically(table_file(study, name, "parquet"), parquet_bytes(table))
    shown = [column for column in table.column_names if column != "samples_ms"]
    sections = sections_of(name, table.select(shown).to_pylist())
    write_atomically(table_file(study, name, "md"), markdown(sections))
    write_atomically(table_file(study, name, "tex"), latex(sections))


def sections_of(name: str, rows: Sequence[Row]) -> list[Section]:
    """The sections of a table, from its long rows."""
    if name == "support":
        return support_sections(rows)
    return (
        verification_sections(cells_of(rows))
        if name == "verification"
        else throughput_sections(cells_of(rows))
    )


def _table(study: Study, name: str, partial: bool) -> pa.Table:
    if name in families(study):
        return long_table(collect(study, name, partial), name)
    collected = {family: collect(study, family, partial) for family in families(study)}
    if name == "support":
        return table_of(
            support_rows(study, [item for items in collected.values() for item in items]), SUPPORT_COLUMNS
        )
    rows = [long_row(item) for items in collected.values() for item in items]
    return table_of(verification_rows(rows), VERIFICATION_COLUMNS)
