"""The records of a family as a target of its own, measured or, of a frozen study, as they lie there."""


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
