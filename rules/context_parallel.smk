"""Context parallel: one job a mechanism, pattern, heads and number of ranks. On one machine the job starts the ranks itself."""

from longca.measure.world.fingerprint import source_fingerprint as mechanism_fingerprint


rule measure_context_parallel:
    """Measure a mechanism over a kernel on one pattern and number of ranks: all lengths, arrangements, samples and passes."""
    input:
        lambda wildcards: series_masks(series_at("context_parallel", *wildcards)),
    output:
        f"{RESULTS}/records/context_parallel/{{dataset}}/{{mechanism}}/{{kernel}}/{{pattern}}/{{heads}}/{{world_size}}.jsonl",
    log:
        f"{LOGS}/records/context_parallel/{{dataset}}/{{mechanism}}/{{kernel}}/{{pattern}}/{{heads}}/{{world_size}}.log",
    threads: workflow.cores
    resources:
        timing=1,
    params:
        fingerprint=lambda wildcards: mechanism_fingerprint(wildcards.mechanism, wildcards.kernel),
        cases=lambda wildcards: measured_cases(series_at("context_parallel", *wildcards)),
        protocol=protocol(),
    shell:
        "longca measure --study {study_file:q} --only family=context_parallel,dataset={wildcards.dataset:q},"
        "mechanism={wildcards.mechanism:q},kernel={wildcards.kernel:q},pattern={wildcards.pattern:q},"
        "heads={wildcards.heads:q},world_size={wildcards.world_size:q} > {log:q} 2>&1"
