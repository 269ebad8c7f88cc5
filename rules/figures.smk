"""From tables and masks to figures, each as HTML, SVG, PDF and Vega-Lite JSON."""

import longca.reporting
from longca.measure.ceilings import ceilings_file
from longca.reporting.names import FIGURE_FORMATS, figure_names, figures_of

TEMPLATES = Path(longca.reporting.__path__[0], "templates")


def figure_kind(name):
    """The figure of the study with this name."""
    (kind,) = [kind for kind in figures_of(study) if kind.name == name]
    return kind


def figure_inputs(wildcards):
    """The table it is drawn from, or the masks; for the roofline the ceilings, too, where they were measured."""
    kind = figure_kind(wildcards.figure)
    table = rules.masks.input if kind.table is None else [f"{RESULTS}/tables/{kind.table}.parquet"]
    ceilings = ceilings_file(Path(RESULTS))
    return [*table, *([str(ceilings)] if kind.name == "roofline" and ceilings.exists() else [])]


rule figure:
    """Draw one figure of the study."""
    input:
        figure_inputs,
        from_here(TEMPLATES / "figure.html.j2"),
        from_here(TEMPLATES / "embed.js"),
    output:
        report(
            f"{RESULTS}/figures/{{figure}}.html",
            caption="captions/figure.rst",
            category="Figures",
            labels={"figure": "{figure}"},
        ),
        [f"{RESULTS}/figures/{{figure}}.{suffix}" for suffix in FIGURE_FORMATS if suffix != "html"],
    log:
        f"{LOGS}/figures/{{figure}}.log",
    wildcard_constraints:
        figure="|".join(figure_names(study)),
    localrule: True
    params:
        caption=lambda wildcards: figure_kind(wildcards.figure).caption,
        code=closure_digest("longca.reporting.figures.drawing"),
    shell:
        "longca figures {wildcards.figure:q} --study {study_file:q} > {log:q} 2>&1"


rule figures:
    """Every figure of the study."""
    input:
        expand(
            "{results}/figures/{figure}.{suffix}",
            results=RESULTS,
            figure=figure_names(study),
            suffix=FIGURE_FORMATS,
        ),
