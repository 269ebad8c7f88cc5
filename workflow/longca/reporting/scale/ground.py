"""What modelled figures of a study rest on, told once for `project` and `advise`: its fit, a kernel, documents."""

from collections.abc import Sequence
from dataclasses import dataclass

from longca.data.packing import resolve_dataset
from longca.errors import LongcaError
from longca.masks.patterns import DYNAMIC_PATTERNS, PATTERNS
from longca.parallel.clusters import Cluster, clusters
from longca.reporting.long import Row
from longca.reporting.scale.fit import Fit, fit
from longca.reporting.scale.points import Point, measured_points
from longca.reporting.scale.projection import Question
from longca.units import Heads

_RANKS = "context_parallel"


@dataclass(frozen=True)
class Ground:
    """A model and one of its local kernels on a pattern; dataset: whose documents the pattern's mask is of."""

    model: Fit
    kernel: str
    pattern: str
    dataset: str
    head_dim: int
    element_bytes: int

    def questions(self, tokens: int, heads: Heads, passes: Sequence[str]) -> list[Question]:
        """One a pass, of so many tokens a rank, with elements and a head dimension as measured."""
        place, shape = (self.kernel, self.pattern, self.dataset), (*heads, self.head_dim, self.element_bytes)
        return [Question(*place, tokens, *shape, pass_) for pass_ in passes]

    def documents(self, seqlen: int) -> str:
        """The dataset in words; nothing of a pattern without sampled documents."""
        return documents_of(self.pattern, self.dataset, seqlen)


def ground_on(model: Fit, points: Sequence[Point], rows: Sequence[Row], kernel: str, pattern: str) -> Ground:
    """Of a kernel and pattern that were measured on ranks. rows: long rows of the study, points: its ranks'."""
    load = next(point.workload for point in points if (point.kernel, point.pattern) == (kernel, pattern))
    return Ground(model, kernel, pattern, dataset_of(rows, pattern), load.head_dim, load.element_bytes)


def check_not_block_sparse(pattern: str) -> None:
    """Raise LongcaError for a block-sparse pattern, saying where its numbers stand."""
    if pattern in DYNAMIC_PATTERNS:
        raise LongcaError(
            f"--pattern: {pattern} is block-sparse, of which there is neither advice nor a model yet; its numbers "
            "stand in the study's tables/sparse, and in words in docs/sparse.md"
        )


def documents_of(pattern: str, dataset: str, seqlen: int) -> str:
    """Whose documents a mask of `seqlen` tokens is of, in words; nothing where a pattern samples none."""
    if not PATTERNS[pattern].takes_documents:
        return ""
    resolved = resolve_dataset(dataset, seqlen)
    return f"documents of {dataset}" + (f" ({resolved})" if resolved != dataset else "")


def dataset_of(rows: Sequence[Row], pattern: str) -> str:
    """Whose documents a pattern is modelled with: those of the ranks; where none ran it, the dense kernels'.

    Of several the first by name: records do not tell the order of a config.
    """
    own = [row for row in rows if row["pattern"] == pattern]
    return min((row["dataset"] for row in own if row["family"] == _RANKS), default="") or min(
        row["dataset"] for row in own
    )


def fitted(rows: Sequence[Row]) -> tuple[Fit, list[Point]] | None:
    """The model fitted to a study's ranks; None where there is no point or no cluster is of their GPU.

    rows: long rows, of which those of context parallel tell.
    """
    own = [row for row in rows if row["family"] == _RANKS]
    home, points = home_clusters(own), measured_points(own)
    return (fit(points, home[0]), points) if home and points else None


def home_clusters(rows: Sequence[Row]) -> list[Cluster]:
    """The clusters of the GPU that measured: H200 for h200_400g. None where no cluster is of that GPU."""
    devices = {row.get("environment_device") or "" for row in rows if row["status"] == "ok"}
    home = {cluster.name for device in devices for cluster in clusters_of(device)}
    return [cluster for name, cluster in clusters().items() if name in home]


def clusters_of(device: str) -> list[Cluster]:
    """The clusters of a GPU by its name."""
    words = device.upper().replace(" ", "_").split("_")
    return [cluster for name, cluster in clusters().items() if name.partition("_")[0].upper() in words]
