"""From records to tables, each as CSV, Parquet, Markdown and LaTeX."""

from longca.reporting.names import TABLE_FORMATS, table_names, tables_of


def table_kind(name):
    """The table of the study with this name."""
    (kind,) = [kind for kind in tables_of(study) if kind.name == name]
    return kind


def table_records(wildcards):
    """The record files of the families a table is made of, and the controls that cast doubt on records."""
    return [*family_records(*table_kind(wildcards.table).families), *CONTROLS]


rule table:
    """Write one table of the study."""
    input:
        table_records,
    output:
        report(
            f"{RESULTS}/tables/{{table}}.csv",
            caption="captions/table.rst",
            category="Tables",
            labels={"table": "{table}"},
        ),
        [f"{RESULTS}/tables/{{table}}.{suffix}" for suffix in TABLE_FORMATS if suffix != "csv"],
    log:
        f"{LOGS}/tables/{{table}}.log",
    wildcard_constraints:
        table="|".join(table_names(study)),
    localrule: True
    params:
        caption=lambda wildcards: table_kind(wildcards.table).caption,
        code=closure_digest("longca.reporting.tables"),
    shell:
        "longca tables {wildcards.table:q} --study {study_file:q} > {log:q} 2>&1"


rule tables:
    """Every table of the study."""
    input:
        expand(
            "{results}/tables/{table}.{suffix}",
            results=RESULTS,
            table=table_names(study),
            suffix=TABLE_FORMATS,
        ),
