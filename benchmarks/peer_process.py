"""A kernel in a process of its own, for peers.py: it prepares and verifies a cell, then times calls in its turn."""

import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

import torch

from longca.cases import Case
from longca.kernels.interface import Kernel
from longca.kernels.registry import load_kernel
from longca.masks.blocks import load_block_map
from longca.masks.mask import read_mask
from longca.measure.cell import Cell, free
from longca.measure.device import choose_device
from longca.measure.libraries import import_error
from longca.measure.sites import worker_environment
from longca.measure.timing import time_calls

PASSES = ("forward", "backward")


class Peer:
    """The process, seen from outside: lines of JSON go in, one comes out for each."""

    def __init__(self, name: str, family: str, kernel: str, workflow: Path | None) -> None:
        """`workflow`: that folder of another checkout, whose code runs then."""
        self.name = name
        environment = worker_environment(kernel)
        if workflow:
            environment["PYTHONPATH"] = os.pathsep.join([str(workflow), environment.get("PYTHONPATH", "")])
        command = [sys.executable, __file__, family, kernel]
        self._process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def ask(self, **request: Any) -> None:
        """Send a request; `answer` waits for what comes of it."""
        if self._process.poll() is None and self._process.stdin:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        """What the process says; its end is an answer, too."""
        line = self._process.stdout.readline() if self._process.stdout else ""
        return json.loads(line) if line else {"said": "crashed"}


def serve(family: str, name: str) -> None:
    """Answer requests until stdin ends: `case`, `mask`, `oracles` prepare a cell, `time` and `repeats` time a pass."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    kernel, device = load_kernel(family, name), choose_device("auto")
    missing = import_error(kernel.imports, kernel.majors)
    cell: Cell | None = None
    for line in sys.stdin:
        request = json.loads(line)
        if "case" in request:
            cell = None
            free()
            answer, cell = ({"said": missing}, None) if missing else _prepare(kernel, request, device)
        else:
            answer = _time(cell, request, device)
        print(json.dumps(answer), file=answers, flush=True)


def _prepare(
    kernel: Kernel, request: dict[str, Any], device: torch.device
) -> tuple[dict[str, Any], Cell | None]:
    """A cell with both passes; where the backward is refused or fails, with the forward alone; `why` says so."""
    capability = torch.cuda.get_device_capability(device) if device.type == "cuda" else None
    file, why = Path(request["mask"]), dict[str, str]()
    for pass_ in reversed(PASSES):
        case = Case(**request["case"] | {"pass_": pass_})
        refused = kernel.support.reason_against(case, device.type, capability)
        if refused:
            why[pass_] = refused
            continue
        mask = load_block_map(file) if case.family == "sparse" else read_mask(file)
        try:
            cell = Cell(kernel, case, mask, device, True, Path(request["oracles"]))
        except Exception as error:  # whatever a library raises is said in its row
            why[pass_] = _words(error)
            continue
        if cell.verdict.wrong:
            return {"said": cell.verdict.wrong, "errors": cell.verdict.relative_error}, None
        passes = PASSES if pass_ == "backward" else PASSES[:1]
        said = {"said": cell.prepared.backend, "errors": cell.verdict.relative_error, "passes": passes}
        return said | {"why": why}, cell
    return {"said": why["forward"], "why": why}, None


def _time(cell: Cell | None, request: dict[str, Any], device: torch.device) -> dict[str, Any]:
    if cell is None:
        return {"said": "no cell is prepared"}
    try:
        return {"ms": median(time_calls(cell.call(request["time"]), device, request["repeats"]))}
    except Exception as error:  # whatever a library raises is said in its row
        return {"said": _words(error)}


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:400]


if __name__ == "__main__":
    serve(*sys.argv[1:])
