"""From corpora to document lengths, and from those to the packed documents of a sample."""

from snakemake.io import contains_wildcard

from longca.data.corpus_files import expand_files
from longca.data.histogram import RESOURCE
from longca.data.packing import base_dataset, resolve_dataset

# Without the study's own code, which knows every kernel by name: what a rule reads of a study is another parameter.
CODE_OF_DATA = closure_digest("longca.cli.data", ("longca.study",))


def lengths_of_documents(wildcards):
    """The lengths the documents of a dataset are drawn from: `auto` chooses by sequence length."""
    dataset = base_dataset(resolve_dataset(wildcards.dataset, int(wildcards.seqlen)))
    return f"{RESULTS}/lengths/{dataset}.csv"


def corpus_of_lengths(wildcards):
    """The config's corpus of this name; a published dataset has none."""
    corpus = study.datasets.get(wildcards.dataset)
    return corpus.model_dump(mode="json") if corpus else None


def lengths_source(wildcards):
    """The files of a corpus of one's own, a new or changed one of which is counted again, or the published figures."""
    corpus = study.datasets.get(wildcards.dataset)
    if corpus is None:
        return from_here(RESOURCE)
    try:
        files = expand_files(corpus.files, corpus.keys) if corpus.files else []
    except LongcaError as error:
        raise WorkflowError(f"{study_file}: datasets.{wildcards.dataset}.{error}") from None
    for file in files:
        if contains_wildcard(file):
            raise WorkflowError(
                f"{study_file}: datasets.{wildcards.dataset}.files: {file} has a name in braces, which Snakemake takes "
                "for a wildcard and has no way to write otherwise; right: a path without braces, as a link to it"
            )
    return files


rule lengths:
    """Count a corpus's document lengths, or write a published histogram of them."""
    input:
        lengths_source,
    output:
        f"{RESULTS}/lengths/{{dataset}}.csv",
    log:
        f"{LOGS}/lengths/{{dataset}}.log",
    threads: workflow.cores
    params:
        corpus=corpus_of_lengths,
        code=CODE_OF_DATA,
    shell:
        "longca lengths {wildcards.dataset:q} --study {study_file:q} --output {output:q} > {log:q} 2>&1"


rule documents:
    """Draw the packed documents of one sample."""
    input:
        lengths_of_documents,
    output:
        f"{RESULTS}/documents/{{dataset}}/{{seqlen}}/{{sample}}.json",
    log:
        f"{LOGS}/documents/{{dataset}}/{{seqlen}}/{{sample}}.log",
    localrule: True
    params:
        seed=study.seed,
        code=CODE_OF_DATA,
    shell:
        "longca documents --dataset {wildcards.dataset:q} --seqlen {wildcards.seqlen:q} --sample {wildcards.sample:q}"
        " --seed {params.seed:q} --lengths {input:q} --output {output:q} > {log:q} 2>&1"
