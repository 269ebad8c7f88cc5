"""Where the study's results stand, and what of its config a rule asks for: nothing else belongs here."""

import os
import sys

from longca.cases import study_series
from longca.closure import closure_digest

RESULTS = f"results/{study.study}"
LOGS = f"{RESULTS}/logs"
SERIES = {series.name.as_posix(): series for series in study_series(study)}

# Rules type `longca`: the one of the environment that Snakemake runs in, activated or not.
os.environ["PATH"] = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])


wildcard_constraints:
    dataset=r"[a-z0-9_]+",
    kernel=r"[a-z0-9_]+",
    pattern=r"[a-z0-9_]+",
    heads=r"[0-9]+-[0-9]+",
    seqlen=r"[1-9][0-9]*",
    sample=r"[0-9]+",
    block=r"[1-9][0-9]*",
    density=r"[0-9.]+(e-[0-9]+)?",
    kv_heads=r"[1-9][0-9]*",
    mechanism=r"[a-z0-9_]+",
    world_size=r"[1-9][0-9]*",


def refuse_other_study(wildcards):
    """Stop with what to type instead."""
    raise WorkflowError(
        f"results/{wildcards.other}/{wildcards.path} is of study {wildcards.other}, this run's study is {study.study} "
        f"({study_file}); right: --configfile with that study's file, as config/{wildcards.other}.yaml"
    )


rule other_study:
    """Say how to get the results of another study than this run's."""
    input:
        refuse_other_study,
    output:
        "results/{other}/{path}",
    wildcard_constraints:
        other=rf"(?!{study.study}/)[^/]+",
        path=r".+",


def from_here(path):
    """A file of the package as a rule's input: an edit of it is seen, where it lies on a machine is not."""
    return os.path.relpath(path)


def series_at(*parts):
    """The series of the study that stands at this place below records/."""
    name = "/".join(parts)
    if name not in SERIES:
        raise WorkflowError(f"{name} is no series of study {study.study} ({study_file})")
    return SERIES[name]


def series_masks(series):
    """The mask files a series reads."""
    return [f"{RESULTS}/{path}" for path in series.mask_files]


def family_series(*families):
    """The series of these families, in the order of the config."""
    return [series for series in SERIES.values() if series.family in families]


def family_records(*families):
    """The record files of these families."""
    return [f"{RESULTS}/records/{series.name}.jsonl" for series in family_series(*families)]


def target_records(family):
    """The record files of a family that is a target by itself, or a function that stops: the study has none of them."""
    words = "context parallelism" if family == "context_parallel" else f"{family} kernels"

    def refuse_family(wildcards):
        raise WorkflowError(
            f"study {study.study} measures no {words}; right: a {family} grid in {study_file}"
        )

    return family_records(family) or refuse_family
