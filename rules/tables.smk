"""From records to tables, each as CSV, Parquet, Markdown and LaTeX."""

from longca.reporting.names import table_names

# What figures and the report read.
TABLE_DATA = expand(f"{RESULTS}/tables/{{table}}.parquet", table=table_names(study))


def table_records(wildcards):
    """The record files of the family a table is named after, else of all."""
    families = [wildcards.table] if wildcards.table in ("dense", "sparse") else ["dense", "sparse"]
    return family_records(*families)


rule table:
    """Write one table of the study."""
    input:
        table_records,
    output:
        multiext(f"{RESULTS}/tables/{{table}}", ".csv", ".parquet", ".md", ".tex"),
    log:
        f"{LOGS}/tables/{{table}}.log",
    wildcard_constraints:
        table="|".join(table_names(study)),
    params:
        code=closure_digest("longca.cli.reporting"),
    shell:
        "longca tables {wildcards.table:q} --study {study_file:q} > {log:q} 2>&1"


rule tables:
    """Every table of the study."""
    input:
        expand(
            "{results}/tables/{table}.{suffix}",
            results=RESULTS,
            table=table_names(study),
            suffix=["csv", "parquet", "md", "tex"],
        ),
