"""From records and masks to figures, each as HTML, SVG, PDF and Vega-Lite JSON."""

from longca.reporting.names import figure_names


rule figure:
    """Draw one figure of the study."""
    input:
        lambda wildcards: reported_records(wildcards.figure),
        rules.masks.input,
    output:
        multiext(f"{RESULTS}/figures/{{figure}}", ".html", ".svg", ".pdf", ".json"),
    log:
        f"{LOGS}/figures/{{figure}}.log",
    wildcard_constraints:
        figure="|".join(figure_names(study)),
    params:
        code=closure_digest("longca.cli.reporting"),
    shell:
        "longca figures {wildcards.figure} --study {study_file:q} > {log:q} 2>&1"


rule figures:
    """Every figure of the study."""
    input:
        expand(
            "{results}/figures/{figure}.{suffix}",
            results=RESULTS,
            figure=figure_names(study),
            suffix=["html", "svg", "pdf", "json"],
        ),
