"""From tables and masks to figures, each as HTML, SVG, PDF and Vega-Lite JSON."""

import longca.reporting
from longca.reporting.names import figure_names

TEMPLATES = [from_here(path) for path in sorted(Path(longca.reporting.__path__[0], "templates").iterdir())]


def figure_inputs(wildcards):
    """The masks where they are what is drawn, else the tables."""
    return rules.masks.input if wildcards.figure == "masks" else TABLE_DATA


rule figure:
    """Draw one figure of the study."""
    input:
        figure_inputs,
        TEMPLATES,
    output:
        multiext(f"{RESULTS}/figures/{{figure}}", ".html", ".svg", ".pdf", ".json"),
    log:
        f"{LOGS}/figures/{{figure}}.log",
    wildcard_constraints:
        figure="|".join(figure_names(study)),
    params:
        code=closure_digest("longca.cli.reporting"),
    shell:
        "longca figures {wildcards.figure:q} --study {study_file:q} > {log:q} 2>&1"


rule figures:
    """Every figure of the study."""
    input:
        expand(
            "{results}/figures/{figure}.{suffix}",
            results=RESULTS,
            figure=figure_names(study),
            suffix=["html", "svg", "pdf", "json"],
        ),
