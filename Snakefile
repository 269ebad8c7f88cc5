"""longca: from document lengths to the tables and figures of a study.

`snakemake [TARGET ...] --profile profiles/local [--configfile config/NAME.yaml]`; targets: all, dense, sparse, masks,
tables, figures, report, archive, or any file below results/. They stand before --configfile, which takes all words
after it.
"""

from pathlib import Path

from snakemake.exceptions import WorkflowError

from longca.errors import LongcaError
from longca.study.loading import settle_study

# Config files are merged deeply: one named here unasked would leak into every other study.
if not workflow.configfiles:

    configfile: "config/smoke.yaml"


try:
    study, study_file = settle_study(config, [Path(name) for name in workflow.configfiles])
except LongcaError as error:
    raise WorkflowError(str(error)) from None


include: "rules/common.smk"


if study.frozen:

    include: "rules/frozen.smk"

else:

    include: "rules/data.smk"
    include: "rules/masks.smk"
    include: "rules/kernels.smk"
    include: "rules/context_parallel.smk"


include: "rules/records.smk"
include: "rules/tables.smk"
include: "rules/figures.smk"
include: "rules/report.smk"
include: "rules/archive.smk"


rule all:
    """Everything of the study: records, tables, figures and the report."""
    default_target: True
    input:
        rules.tables.input,
        rules.figures.input,
        rules.report.output,
