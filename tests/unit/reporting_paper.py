"""Tables and figures of the paper's whole grid from synthetic records: seconds and the most memory they took."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from reporting_records import write_records

from longca.cases import Case
from longca.files import write_atomically
from longca.masks.mask import draw_mask, mask_to_json
from longca.reporting.names import figure_names, pictured_masks, table_names
from longca.study.loading import read_study

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
    kept = case.density_nominal or 0.25
    return {
        "milliseconds": milliseconds,
        "area": kept * case.seqlen**2,
        "density": kept,
        "environment": DEVICE,
        **(of_ranks if case.family == "context_parallel" else {}),
    }


def make(commands: Iterable[list[str]]) -> tuple[float, int]:
    """Run commands, one after the other, until none is left; their CPU seconds, and the most bytes that one took."""
    seconds, peak = 0.0, 0
    for command in commands:
        process = subprocess.Popen([sys.executable, "-m", "longca", *command])
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(f"longca {' '.join(command)}: exit code {process.returncode}")
        seconds += used.ru_utime + used.ru_stime
        peak = max(peak, used.ru_maxrss * 1024)
    return seconds, peak


def main(config: str) -> None:
    """Print {"seconds", "wall_seconds", "bytes"} of what the rules run for a study: a command a table, then a figure.

    Two run at once. Seconds are the CPU time of the slower of the two: what all takes on two cores that nobody else
    uses. Bytes are the most that both took, added.
    """
    study = read_study(Path(config))
    write_records(study, told)
    for file in pictured_masks(study):
        write_atomically(file, mask_to_json(draw_mask(file.parts[-3], int(file.parts[-2]))))
    began, seconds, peak = time.monotonic(), 0.0, 0
    for what, names in (("tables", table_names(study)), ("figures", figure_names(study))):
        left = iter([[what, name, "--study", config] for name in names])
        with ThreadPoolExecutor(2) as pool:
            used = list(pool.map(make, [left, left]))
        seconds += max(cpu for cpu, _ in used)
        peak = max(peak, sum(most for _, most in used))
    print(json.dumps({"seconds": seconds, "wall_seconds": time.monotonic() - began, "bytes": peak}))


if __name__ == "__main__":
    main(sys.argv[1])
