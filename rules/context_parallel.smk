"""Context parallel: one job a mechanism, pattern, heads and number of ranks. The job starts the ranks itself."""

from longca.measure.world.launching import nodes_of
from longca.measure.world.fingerprint import source_fingerprint as mechanism_fingerprint


def nodes(wildcards):
    """The nodes that a series' ranks take, and how many ranks each."""
    return nodes_of(study, int(wildcards.world_size))


rule measure_context_parallel:
    """Measure a mechanism over a kernel on one pattern and number of ranks: all lengths, arrangements, samples and passes."""
    input:
        lambda wildcards: series_masks(series_at("context_parallel", *wildcards)),
    output:
        f"{RESULTS}/records/context_parallel/{{dataset}}/{{mechanism}}/{{kernel}}/{{pattern}}/{{heads}}/{{world_size}}.jsonl",
    log:
        f"{LOGS}/records/context_parallel/{{dataset}}/{{mechanism}}/{{kernel}}/{{pattern}}/{{heads}}/{{world_size}}.log",
    threads: workflow.cores
    # On a cluster. Where `mpi` is set, the job is free to start its ranks. A task a node has to be asked for otherwise.
    resources:
        mpi=lambda wildcards: "srun" if int(wildcards.world_size) > 1 else "",
        nodes=lambda wildcards: nodes(wildcards).nodes,
        tasks_per_node=lambda wildcards: nodes(wildcards).ranks_each if nodes(wildcards).ranks_each > 1 else 0,
        tasks=lambda wildcards: int(wildcards.world_size) if nodes(wildcards).ranks_each == 1 else 0,
        tasks_per_gpu=0,
        gres=lambda wildcards: gpus_of_a_node(nodes(wildcards).ranks_each),
    params:
        fingerprint=lambda wildcards: mechanism_fingerprint(wildcards.mechanism, wildcards.kernel),
        cases=lambda wildcards: measured_cases(series_at("context_parallel", *wildcards)),
        protocol=protocol(),
    shell:
        "longca measure --study {study_file:q} --only family=context_parallel,dataset={wildcards.dataset:q},"
        "mechanism={wildcards.mechanism:q},kernel={wildcards.kernel:q},pattern={wildcards.pattern:q},"
        "heads={wildcards.heads:q},world_size={wildcards.world_size:q} > {log:q} 2>&1"
