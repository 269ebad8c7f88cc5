"""A finished study out of synthetic records over masks that were really drawn: what the tests of the archive pack."""

from pathlib import Path

import yaml
from reporting_records import dense_study, sparse_study, write_records

from longca.cases import Case, study_series
from longca.data.histogram import published_histogram, write_histogram
from longca.data.packing import base_dataset, resolve_dataset
from longca.files import write_atomically
from longca.masks.blocks import draw_block_map, save_block_map
from longca.masks.mask import draw_mask, mask_to_json
from longca.masks.patterns import PATTERNS
from longca.measure.ceilings import Ceilings, keep_ceilings
from longca.reporting.figures.drawing import write_figure
from longca.reporting.names import figure_names, results_of, table_names
from longca.reporting.report import write_report
from longca.reporting.tables import write_table
from longca.study.model import Study

CONFIG = Path("tiny.yaml")


def archived_study() -> Study:
    """Dense and block-sparse kernels on one pattern without documents, one with them, one of blocks."""
    dense = dense_study(patterns=["causal", "causal_document"], seqlens=[256])
    sparse = sparse_study(seqlens=[256], densities=[0.5])
    return dense.model_copy(update={"sparse": sparse.sparse})


def finish_study(study: Study) -> None:
    """Write all that a finished study leaves, and its config, into the working directory."""
    measure_study(study)
    write_atomically(results_of(study) / "jobs" / "dense/auto/naive/causal/4-2.jsonl", "")
    keep_ceilings(results_of(study), Ceilings("a CPU, 2 threads", "float32", 0.5, 20.0))
    for name in table_names(study):
        write_table(study, name)
    for name in figure_names(study):
        write_figure(study, name)
    write_report(study, CONFIG)


def measure_study(study: Study, milliseconds: float = 1.0) -> None:
    """Write the study's config, its masks with what they are drawn from, and records of them."""
    CONFIG.write_text(yaml.safe_dump(study.model_dump(mode="json", exclude_defaults=True), sort_keys=False))
    digests = {case.mask_file: _draw(study, case) for one in study_series(study) for case in one.cases}
    write_records(study, lambda case: {"mask_digest": digests[case.mask_file], "milliseconds": milliseconds})


def _draw(study: Study, case: Case) -> str:
    """Draw the case's mask with what it is drawn from; its digest."""
    file = results_of(study) / case.mask_file
    if case.family == "sparse":
        assert case.block is not None and case.density_nominal is not None
        blocks = draw_block_map(case.pattern, case.seqlen, case.block, case.density_nominal, case.kv_heads)
        save_block_map(blocks, file)
        return blocks.digest
    mask = draw_mask(case.pattern, case.seqlen, case.dataset)
    write_atomically(file, mask_to_json(mask))
    if PATTERNS[case.pattern].takes_documents:
        base = base_dataset(resolve_dataset(case.dataset, case.seqlen))
        write_histogram(results_of(study) / "lengths" / f"{base}.csv", published_histogram(base))
        place = results_of(study) / "documents" / case.dataset / str(case.seqlen) / f"{case.sample}.json"
        write_atomically(place, "{}")
    return mask.digest
