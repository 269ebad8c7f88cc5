"""The mask files a study's cases need: read where they are, else drawn as the pipeline's rules draw them."""

from pathlib import Path

from longca.cases import Case
from longca.data.histogram import read_histogram
from longca.data.packing import base_dataset, resolve_dataset
from longca.errors import LongcaError
from longca.files import write_atomically
from longca.masks.blocks import BlockMap, draw_block_map, load_block_map, save_block_map
from longca.masks.mask import Mask, draw_mask, mask_to_json, read_mask
from longca.masks.patterns import PATTERNS
from longca.study.model import Study


def case_mask(study: Study, results: Path, case: Case) -> Mask | BlockMap:
    """A case's mask or block map, from its file below `results`. Raises LongcaError where it is another study's."""
    path = results / case.mask_file
    if case.family == "sparse":
        return _block_map(study, path, case)
    if not path.exists():
        write_atomically(path, mask_to_json(_draw(study, results, case)))
    mask = read_mask(path)
    for name, found, right in [("seed", mask.seed, study.seed), *_parameters(study, mask)]:
        if found != right:
            raise LongcaError(
                f"{path}: {name} is {found}, the study says {right}; right: remove the file, it is drawn again"
            )
    return mask


def _parameters(study: Study, mask: Mask) -> list[tuple[str, int, int]]:
    configured = study.mask.model_dump()
    return [(name, mask.parameters[name], configured[name]) for name in mask.parameters if name in configured]


def _draw(study: Study, results: Path, case: Case) -> Mask:
    histogram = None
    if PATTERNS[case.pattern].takes_documents:
        lengths = results / "lengths" / f"{base_dataset(resolve_dataset(case.dataset, case.seqlen))}.csv"
        histogram = read_histogram(lengths) if lengths.exists() else None
        if histogram is None and case.dataset in study.datasets:
            raise LongcaError(
                f"{lengths}: is missing; right: snakemake {lengths}, which counts the corpus {case.dataset}"
            )
    wanted = set(PATTERNS[case.pattern].parameters)
    parameters = {name: value for name, value in study.mask.model_dump().items() if name in wanted}
    return draw_mask(case.pattern, case.seqlen, case.dataset, histogram, study.seed, case.sample, parameters)


def _block_map(study: Study, path: Path, case: Case) -> BlockMap:
    if not path.exists():
        assert case.block is not None and case.density_nominal is not None
        blocks = draw_block_map(
            case.pattern,
            case.seqlen,
            case.block,
            case.density_nominal,
            case.kv_heads,
            study.seed,
            case.sample,
        )
        save_block_map(blocks, path)
    return load_block_map(path)
