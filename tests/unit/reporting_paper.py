"""Tables and figures of the paper's whole grid from synthetic records: seconds and the most memory they took."""

import json
import resource
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from reporting_records import write_records

from longca.cases import Case
from longca.files import write_atomically
from longca.masks.mask import draw_mask, mask_to_json
from longca.reporting.figures.drawing import write_figure
from longca.reporting.names import figure_names, pictured_masks, table_names
from longca.reporting.tables import write_table
from longca.study.loading import read_study
from longca.study.model import Study

DEVICE = {"device": "NVIDIA H200", "compute_capability": "9.0", "torch": "2.11.0"}


def told(case: Case) -> dict[str, Any]:
    """Every fifth pattern of a kernel unsupported, the longest out of memory, else a speed by kernel."""
    if (len(case.kernel) + len(case.pattern)) % 5 == 0:
        return {
            "status": "unsupported",
            "reason": f"{case.kernel} has no {case.pattern} mask",
            "environment": DEVICE,
        }
    if case.kernel == "naive" and case.seqlen > 4096:
        return {"status": "out_of_memory", "reason": "64 GiB asked", "environment": DEVICE}
    milliseconds = case.seqlen**2 / 1e6 * (1 + len(case.kernel) / 10) * (case.density_nominal or 1.0)
    of_ranks = {
        "rank_latency_ms": {"min": milliseconds, "mean": milliseconds, "max": milliseconds},
        "communication_bytes": 2**20,
        "communication_ms": 0.3 * milliseconds,
        "computation_ms": 0.8 * milliseconds,
        "imbalance": 1.0,
    }
    own = of_ranks if case.family == "context_parallel" else {}
    return {"milliseconds": milliseconds, "environment": DEVICE, **own}


def made(names: list[str], make: Any, study: Study) -> tuple[float, int]:
    """Make some of a study's tables or figures; the CPU seconds and the most bytes that this process took."""
    for name in names:
        make(study, name)
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime, used.ru_maxrss * 1024


def main(config: str) -> None:
    """Print {"seconds", "bytes"} of the tables and figures of a config's study, made by two processes at once.

    Seconds are the CPU time of the slower process: what they take on two cores that nobody else uses.
    """
    study = read_study(Path(config))
    write_records(study, told)
    for file in pictured_masks(study):
        write_atomically(file, mask_to_json(draw_mask(file.parts[-3], int(file.parts[-2]))))
    seconds, peak = 0.0, 0
    for names, make in ((table_names(study), write_table), (figure_names(study), write_figure)):
        with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
            halves = [list(names[::2]), list(names[1::2])]
            used = list(pool.map(partial(made, make=make, study=study), halves))
        seconds += max(cpu for cpu, _ in used)
        peak = max(peak, sum(most for _, most in used))
    print(json.dumps({"seconds": seconds, "bytes": peak}))


if __name__ == "__main__":
    main(sys.argv[1])
