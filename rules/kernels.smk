"""From masks to records: one job a series. Measured cases are kept in its journal, so a rerun measures what is missing."""

from longca.kernels.fingerprint import source_fingerprint
from longca.measure.device_probe import visible_gpus
from longca.measure.processes import serve_jobs
from longca.measure.protocol import PROTOCOL_VERSION

ON_GPUS = study.measure.device != "cpu"


onstart:
    if workflow.local_exec:
        # Snakemake's limit of jobs a second, of which there is no need here, has it look once a second, for each job
        # that has ended, whether another may start: after fifty that took a tenth of a core beside what is measured.
        workflow.scheduler.job_rate_limiter = None
        if not ON_GPUS:
            # Jobs on this machine's processor share one import of torch.
            serve_jobs()


def measured_cases(series):
    """The cases of a series as they stand in a rule's parameters: a change of the grid is a change of these."""
    return [" ".join(map(str, case.columns().values())) for case in series.cases]


def protocol():
    """What decides how a case is measured: of the config, and the version of what its numbers mean."""
    decisive = ("device", "device_model", "warmups", "repetitions", "sampling_time", "threads")
    return {name: getattr(study.measure, name) for name in decisive} | {"version": PROTOCOL_VERSION}


def gpus_of_a_node(count):
    """What a cluster's job asks of a node; nothing where the study is measured on its processor."""
    return f"gpu:{count}" if ON_GPUS else ""


def share_of_cores(wildcards):
    """All of them: nothing runs beside a measurement. On a machine of several GPUs, one GPU's: each has a job of its own."""
    gpus = len(visible_gpus()) if ON_GPUS and workflow.local_exec else 0
    return max(1, workflow.cores // max(1, gpus))


rule measure_dense:
    """Measure a dense kernel on one pattern: all lengths, samples and passes."""
    input:
        lambda wildcards: series_masks(series_at("dense", *wildcards)),
    output:
        f"{RESULTS}/records/dense/{{dataset}}/{{kernel}}/{{pattern}}/{{heads}}.jsonl",
    log:
        f"{LOGS}/records/dense/{{dataset}}/{{kernel}}/{{pattern}}/{{heads}}.log",
    threads: share_of_cores
    resources:
        gres=gpus_of_a_node(1),
    params:
        fingerprint=lambda wildcards: source_fingerprint("dense", wildcards.kernel),
        cases=lambda wildcards: measured_cases(series_at("dense", *wildcards)),
        protocol=protocol(),
    shell:
        "longca measure --study {study_file:q} --only family=dense,dataset={wildcards.dataset:q},"
        "kernel={wildcards.kernel:q},pattern={wildcards.pattern:q},heads={wildcards.heads:q} > {log:q} 2>&1"


rule measure_sparse:
    """Measure a block-sparse kernel on one pattern: all lengths, blocks, densities, samples and passes."""
    input:
        lambda wildcards: series_masks(series_at("sparse", *wildcards)),
    output:
        f"{RESULTS}/records/sparse/{{kernel}}/{{pattern}}/{{heads}}.jsonl",
    log:
        f"{LOGS}/records/sparse/{{kernel}}/{{pattern}}/{{heads}}.log",
    threads: share_of_cores
    resources:
        gres=gpus_of_a_node(1),
    params:
        fingerprint=lambda wildcards: source_fingerprint("sparse", wildcards.kernel),
        cases=lambda wildcards: measured_cases(series_at("sparse", *wildcards)),
        protocol=protocol(),
    shell:
        "longca measure --study {study_file:q} --only family=sparse,"
        "kernel={wildcards.kernel:q},pattern={wildcards.pattern:q},heads={wildcards.heads:q} > {log:q} 2>&1"
