"""From all of it to one page that opens offline."""


rule report:
    """Write the self-contained report of the study."""
    input:
        rules.tables.input,
        rules.figures.input,
        TEMPLATES,
    output:
        f"{RESULTS}/report.html",
    log:
        f"{LOGS}/report.log",
    params:
        code=closure_digest("longca.cli.reporting"),
    shell:
        "longca report --study {study_file:q} > {log:q} 2>&1"
