"""From all of it to one page that opens offline."""


rule report:
    """Write the self-contained report of the study."""
    input:
        rules.tables.input,
        rules.figures.input,
        # Cells measured again, where some were: by hand, with `longca repeat`.
        sorted(map(str, Path(RESULTS, "repeats").glob("*.jsonl"))),
        [from_here(path) for path in sorted(TEMPLATES.rglob("*")) if path.is_file()],
    output:
        report(f"{RESULTS}/report.html", caption="captions/report.rst", category="The study on one page"),
    log:
        f"{LOGS}/report.log",
    localrule: True
    params:
        code=closure_digest("longca.reporting.report"),
    shell:
        "longca report --study {study_file:q} > {log:q} 2>&1"
