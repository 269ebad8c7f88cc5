"""A frozen study: its records and masks are inputs, kept in the repository. No rule here draws or measures."""

from longca.reporting.names import families, pictured_masks

FROZEN = [*family_records(*families(study)), *map(str, pictured_masks(study))]
ABSENT = [path for path in FROZEN if not Path(path).exists()]
if ABSENT:
    raise WorkflowError(
        f"study {study.study} is frozen ({study_file}), its records and masks are inputs: {ABSENT[0]} is not there"
        + (f", and {len(ABSENT) - 1} others are not" if len(ABSENT) > 1 else "")
        + f"; right: git checkout -- {RESULTS}, or frozen: false, which measures"
    )


rule masks:
    """The masks that the study's figure shows; `longca freeze --check` draws all of them again to compare."""
    input:
        pictured_masks(study),
