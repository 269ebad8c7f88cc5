"""From all of it to one file to hand on, an RO-Crate: `snakemake archive`."""

from longca.reporting.archive.contents import by_hand_files, code_files, result_files
from longca.revision import git_revision


def archive_inputs(wildcards):
    """The study's config and results, and the code that is archived with them."""
    results = [*result_files(study), *by_hand_files(study)]
    return [study_file, *map(str, results), *map(from_here, code_files())]


rule archive:
    """Pack the study into one archive, the same bytes each time."""
    input:
        archive_inputs,
    output:
        f"{RESULTS}/archive.zip",
    log:
        f"{LOGS}/archive.log",
    params:
        # What the archive says of its code: the same for everyone who has this code.
        revision=lambda wildcards: git_revision(),
    shell:
        "longca archive make --study {study_file:q} > {log:q} 2>&1"
