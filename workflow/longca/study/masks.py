"""How a study draws its masks: the one source for measuring them and for reckoning with them."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from longca.data.histogram import Histogram, read_histogram
from longca.data.packing import base_dataset, resolve_dataset
from longca.errors import LongcaError
from longca.masks.mask import Mask, draw_mask
from longca.masks.patterns import PATTERNS
from longca.study.model import Study


@dataclass(frozen=True)
class StudyMasks:
    """What masks are drawn from.

    parameters: of which a pattern takes its own. lengths: the folder of counted lengths, where a dataset without a
    file there has its published ones. corpora: names of datasets that have no published ones.
    """

    seed: int = 42
    parameters: Mapping[str, int] = field(default_factory=dict)
    lengths: Path | None = None
    corpora: Collection[str] = ()

    def draw(self, pattern: str, seqlen: int, dataset: str, sample: int = 0) -> Mask:
        """A sample of a pattern. Raises LongcaError where the lengths of a corpus are not counted."""
        known = PATTERNS[pattern]
        histogram = self._histogram(dataset, seqlen) if known.takes_documents else None
        parameters = {name: value for name, value in self.parameters.items() if name in known.parameters}
        return draw_mask(pattern, seqlen, dataset, histogram, self.seed, sample, parameters)

    def _histogram(self, dataset: str, seqlen: int) -> Histogram | None:
        if self.lengths is None:
            return None
        name = base_dataset(resolve_dataset(dataset, seqlen))
        file = self.lengths / f"{name}.csv"
        if file.exists():
            return read_histogram(file)
        if name in self.corpora:
            raise LongcaError(f"{file}: is missing; right: snakemake {file}, which counts the corpus {name}")
        return None


# Of the published lengths, as the paper has its masks.
DEFAULT_MASKS = StudyMasks()


def study_masks(study: Study, results: Path) -> StudyMasks:
    """How a study whose results lie in a folder draws its masks."""
    return StudyMasks(study.seed, study.mask.model_dump(), results / "lengths", study.datasets)
