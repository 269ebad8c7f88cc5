"""The records of a family as a target of its own, measured or, of a frozen study, as they lie there."""

from longca.measure.controls import controls_file

# Of a frozen study, where it has any: context parallel's have none.
CONTROLS = [
    str(file)
    for file in [controls_file(Path(RESULTS))]
    if study.measure.control and (file.exists() or not study.frozen)
]

if CONTROLS and not study.frozen:

    rule controls:
        """An empty file of controls, before the first one is measured: tables are then made of it from the start."""
        output:
            update(CONTROLS),
        localrule: True
        shell:
            "touch {output:q}"


rule dense:
    """Every record of the dense kernels."""
    input:
        target_records("dense"),


rule sparse:
    """Every record of the block-sparse kernels."""
    input:
        target_records("sparse"),


rule context_parallel:
    """Every record of context parallelism."""
    input:
        target_records("context_parallel"),
