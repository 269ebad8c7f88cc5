"""The README inside an archive: what it is, and how to check, draw and measure it again."""

from longca.reporting.archive.crate import Run


def readme(run: Run) -> str:
    """The README of an archive, in Markdown."""
    modified = (
        "; + says that files differed from it, those here are what ran" if run.revision.endswith("+") else ""
    )
    devices = "\n".join(f"- {device}" for device in run.devices)
    return f"""# Study {run.study}

An archive of longca, which measures long-context attention. It is an RO-Crate (`ro-crate-metadata.json` names every
file with its sha256) and, unzipped, a checkout of the workflow with the study's results in place.

- Code: revision {run.revision}{modified}.
- Measured: {run.first} to {run.last}, on

{devices}

| what | where |
|---|---|
| what was asked | `{run.config}` |
| what came of it | `results/{run.study}/`: lengths, documents, masks, records, tables, figures, report.html |
| with which versions | `envs/`, and the `environment` of each record |
| by which code | `Snakefile`, `rules/`, `workflow/` |

Set up, in the unzipped folder (on a machine with an NVIDIA GPU `make env SET=cuda`):

    make env && source .venv/bin/activate

Check every digest, and that tables and figures are what the records give:

    longca archive check FILE.zip

Make tables, figures and the report again, in place:

    snakemake report --forcerun table figure --profile profiles/local --configfile {run.config}

Compare with a study of your own:

    longca compare FILE.zip results/YOURS

Measure it again, here (a config that says `frozen: true` without that line):

    mv results/{run.study} measured-before
    snakemake all --profile profiles/local --configfile {run.config}
"""
