"""From documents to masks, and block maps of the dynamic patterns. A pattern's parameters are all it reads of the config."""

from longca.masks.patterns import PATTERNS


def mask_parameters(wildcards):
    """`--set name=value` for each of the config's parameters that the pattern takes."""
    values = study.mask.model_dump()
    taken = [name for name in PATTERNS[wildcards.pattern].parameters if name in values]
    return [word for name in taken for word in ("--set", f"{name}={values[name]}")]


rule document_mask:
    """Build a mask over sampled documents."""
    input:
        lengths=lengths_of_documents,
        documents=f"{RESULTS}/documents/{{dataset}}/{{seqlen}}/{{sample}}.json",
    output:
        f"{RESULTS}/masks/{{dataset}}/{{pattern}}/{{seqlen}}/{{sample}}.json",
    log:
        f"{LOGS}/masks/{{dataset}}/{{pattern}}/{{seqlen}}/{{sample}}.log",
    wildcard_constraints:
        pattern="|".join(name for name in PATTERNS if PATTERNS[name].takes_documents),
    localrule: True
    params:
        seed=study.seed,
        parameters=mask_parameters,
        code=closure_digest("longca.cli.masks"),
    shell:
        "longca mask {wildcards.pattern:q} --seqlen {wildcards.seqlen:q} --dataset {wildcards.dataset:q}"
        " --seed {params.seed:q} --sample {wildcards.sample:q} {params.parameters:q}"
        " --lengths {input.lengths:q} --documents-file {input.documents:q} --output {output:q} > {log:q} 2>&1"


rule mask:
    """Build a mask that takes no sampled documents; it is the same under every dataset."""
    output:
        f"{RESULTS}/masks/auto/{{pattern}}/{{seqlen}}/{{sample}}.json",
    log:
        f"{LOGS}/masks/auto/{{pattern}}/{{seqlen}}/{{sample}}.log",
    wildcard_constraints:
        pattern="|".join(name for name in PATTERNS if not PATTERNS[name].takes_documents),
    localrule: True
    params:
        seed=study.seed,
        parameters=mask_parameters,
        code=closure_digest("longca.cli.masks"),
    shell:
        "longca mask {wildcards.pattern:q} --seqlen {wildcards.seqlen:q} --dataset auto"
        " --seed {params.seed:q} --sample {wildcards.sample:q} {params.parameters:q} --output {output:q} > {log:q} 2>&1"


rule block_map:
    """Draw the block map of a dynamic pattern."""
    output:
        f"{RESULTS}/blocks/{{pattern}}/{{seqlen}}/{{block}}/{{density}}/{{kv_heads}}/{{sample}}.npz",
    log:
        f"{LOGS}/blocks/{{pattern}}/{{seqlen}}/{{block}}/{{density}}/{{kv_heads}}/{{sample}}.log",
    localrule: True
    params:
        seed=study.seed,
        code=closure_digest("longca.cli.masks"),
    shell:
        "longca blocks {wildcards.pattern:q} --seqlen {wildcards.seqlen:q} --block {wildcards.block:q}"
        " --density {wildcards.density:q} --kv-heads {wildcards.kv_heads:q}"
        " --seed {params.seed:q} --sample {wildcards.sample:q} --output {output:q} > {log:q} 2>&1"


rule masks:
    """Every mask and block map the study measures."""
    input:
        sorted({path for series in SERIES.values() for path in series_masks(series)}),
