"""Every table and figure there is: a line each. What makes them is beside it in tables.py and figures/drawing.py.

Light, for a Snakefile asks at every start.
"""

from collections.abc import Callable
from dataclasses import dataclass

from longca.reporting.anchors import has_dense_anchors
from longca.study.model import Study

ALL_FAMILIES = ("dense", "sparse", "context_parallel")


@dataclass(frozen=True)
class TableKind:
    """A table: a study has it where it has a grid of any of `families`, and it is made of their records.

    has_rows: whether there is anything to show of a study that has.
    """

    name: str
    caption: str
    families: tuple[str, ...]
    has_rows: Callable[[Study], bool] = lambda study: True


@dataclass(frozen=True)
class FigureKind:
    """A figure: a study has it where it has a grid of any of `families`.

    It is drawn from the table named `table`; None: from the study's mask files.
    """

    name: str
    title: str
    caption: str
    table: str | None
    families: tuple[str, ...]


def _on_gpus(study: Study) -> bool:
    """Whether the study's ranks are GPUs: what a cluster of CPUs would do says nothing."""
    return study.measure.device != "cpu"


TABLES = (
    TableKind("dense", "Throughput of the dense kernels by pattern and length.", ("dense",)),
    TableKind(
        "sparse",
        "Throughput, speed-up, memory and statuses of the block-sparse kernels by pattern, length and density.",
        ("sparse",),
    ),
    TableKind(
        "context_parallel",
        "Throughput a rank, efficiency, communication and memory of the mechanisms by pattern, ranks and length.",
        ("context_parallel",),
    ),
    TableKind(
        "cost_model",
        "The cost model of context parallelism: its constants, and how far it is off where it was not fitted.",
        ("context_parallel",),
        _on_gpus,
    ),
    TableKind(
        "projection",
        "Modelled throughput of the mechanisms on 8 to 1024 GPUs of named clusters.",
        ("context_parallel",),
        _on_gpus,
    ),
    TableKind("support", "What each kernel declares it can do, beside what was seen.", ALL_FAMILIES),
    TableKind("verification", "How far each case was from the oracle, and which were wrong.", ALL_FAMILIES),
    TableKind("anchors", "What others published, beside what was measured.", ("dense",), has_dense_anchors),
)

FIGURES = (
    FigureKind(
        "dense_throughput_over_length",
        "Dense attention: throughput over length",
        "Median throughput with p20 to p80, a panel a pattern and pass. A cross is a case without a number.",
        "dense",
        ("dense",),
    ),
    FigureKind(
        "dense_throughput_over_patterns",
        "Dense attention: throughput over patterns",
        "Median throughput with p20 to p80, a panel a pass and length. A word is a case without a number.",
        "dense",
        ("dense",),
    ),
    FigureKind(
        "peak_memory",
        "Dense attention: peak memory over length",
        "The allocator's peak over the inputs, a panel a pattern and pass.",
        "dense",
        ("dense",),
    ),
    FigureKind(
        "sparse_throughput_over_density",
        "Block-sparse attention: throughput over density",
        "Median throughput with p20 to p80 over the share of cells really kept.",
        "sparse",
        ("sparse",),
    ),
    FigureKind(
        "sparse_speedup_over_density",
        "Block-sparse attention: speed-up over density",
        "Each kernel's time on the map of density 1 over its time on a sparser one.",
        "sparse",
        ("sparse",),
    ),
    FigureKind(
        "sparse_peak_memory",
        "Block-sparse attention: peak memory over density",
        "The allocator's peak over the inputs, a panel a pattern with its block size, length and pass.",
        "sparse",
        ("sparse",),
    ),
    FigureKind(
        "context_parallel_scaling",
        "Context parallelism: throughput a rank over the number of ranks",
        "Median throughput a rank, a panel a pattern, pass and tokens a rank; the dashed rule is one rank alone.",
        "context_parallel",
        ("context_parallel",),
    ),
    FigureKind(
        "projection",
        "Modelled: context parallelism on 8 to 1024 GPUs",
        "Modelled throughput a GPU, each mechanism on its best topology. No point of it was measured.",
        "projection",
        ("context_parallel",),
    ),
    FigureKind(
        "roofline",
        "Dense attention: roofline",
        "Throughput over FLOPs a byte, under the matrix product and the copy measured on the same device.",
        "dense",
        ("dense",),
    ),
    FigureKind(
        "sample_spread",
        "Dense attention: spread of the samples",
        "Single calls in percent of their case's median, over all cases of a kernel.",
        "dense",
        ("dense",),
    ),
    FigureKind(
        "support",
        "What each kernel did on each pattern",
        "Each kernel on each pattern: the status that most needs a reader's eye.",
        "support",
        ALL_FAMILIES,
    ),
    FigureKind("masks", "The masks of this study", "Kept cells of each pattern, sample 0.", None, ("dense",)),
)
