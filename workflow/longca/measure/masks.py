"""The mask files a study's cases need: read where they are, else drawn as the pipeline's rules draw them."""

from functools import lru_cache
from pathlib import Path
from typing import Any

from longca.cases import Case
from longca.errors import LongcaError
from longca.files import write_atomically
from longca.masks.blocks import BlockMap, draw_block_map, load_block_map, save_block_map
from longca.masks.checking import check_mask
from longca.masks.mask import Mask, mask_to_json, read_mask
from longca.study.masks import study_masks
from longca.study.model import Study


def case_mask(study: Study, results: Path, case: Case) -> Mask | BlockMap:
    """A case's mask or block map, from its file below `results`. Raises LongcaError where it is another study's."""
    path = results / case.mask_file
    if case.family == "sparse":
        return _block_map(study, path, case)
    right = _draw(study, results, case)
    if not path.exists():
        write_atomically(path, mask_to_json(right))
    mask = read_mask(path)
    names = ("pattern", "seqlen", "dataset", "seed", "sample", "parameters", "documents")
    _check_drawn(path, mask, {name: getattr(right, name) for name in names})
    return mask


def drawn_digest(study: Study, results: Path, case: Case) -> str:
    """The digest of a case's mask or map as the study draws it, whatever lies in its file."""
    return (
        _drawn_blocks(study, case).digest if case.family == "sparse" else _draw(study, results, case).digest
    )


def _check_drawn(path: Path, found: Mask | BlockMap, right: dict[str, Any]) -> None:
    """Raise LongcaError where a file holds another draw than the study's."""
    for name, value in right.items():
        if getattr(found, name) != value:
            texts = [str(one)[:60] for one in (getattr(found, name), value)]
            raise LongcaError(
                f"{path}: {name} is {texts[0]}, the study's is {texts[1]}; right: remove the file, it is drawn again"
            )


def _draw(study: Study, results: Path, case: Case) -> Mask:
    return check_mask(study_masks(study, results).draw(case.pattern, case.seqlen, case.dataset, case.sample))


# Both passes of a cell ask for the same map, and a long one takes a while to draw.
_drawn_map = lru_cache(maxsize=1)(draw_block_map)


def _drawn_blocks(study: Study, case: Case) -> BlockMap:
    assert case.block is not None and case.density_nominal is not None
    return _drawn_map(
        case.pattern, case.seqlen, case.block, case.density_nominal, case.kv_heads, study.seed, case.sample
    )


def _block_map(study: Study, path: Path, case: Case) -> BlockMap:
    drawn = _drawn_blocks(study, case)
    if not path.exists():
        save_block_map(drawn, path)
    blocks = load_block_map(path)
    names = ("pattern", "seqlen", "block", "density_nominal", "kv_heads", "seed", "sample", "digest")
    _check_drawn(path, blocks, {name: getattr(drawn, name) for name in names})
    return blocks
