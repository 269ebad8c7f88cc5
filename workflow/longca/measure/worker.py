"""The process that runs a kernel: any number of cases, one at a time, asked for in lines of JSON on stdin.

    python -m longca.measure.worker FAMILY KERNEL DEVICE [THREADS]

It may crash, hang or run out of memory: the process that started it loses one case and starts another worker.
"""

import gc
import os
import sys
from typing import TextIO

from pydantic import BaseModel

from longca.kernels.registry import KernelModuleError, load_kernel
from longca.measure.libraries import import_error, installed_version
from longca.measure.parent import die_with_parent
from longca.measure.protocol import Loaded, Ready, Request


def main() -> None:
    """Serve requests until stdin ends."""
    family, name, wanted_device, *threads = sys.argv[1:]
    answers = _own_stdout()
    die_with_parent()

    import torch

    from longca.measure import device as devices

    for count in threads:
        torch.set_num_threads(int(count))
    device = devices.choose_device(wanted_device)
    _send(answers, Ready(device=device.type, environment=devices.describe(device)))  # type: ignore[arg-type]
    try:
        kernel = load_kernel(family, name)
    except KernelModuleError as error:
        _send(answers, Loaded(versions={}, missing=str(error), serves=False))
        return
    missing = import_error(kernel.imports, kernel.majors)
    versions = {name: installed_version(name) for name in kernel.distributions}
    _send(answers, Loaded(versions=versions, missing=missing))

    from longca.measure.cell import CellMeasurer

    measurer = CellMeasurer(kernel, device, missing)
    # Between cells garbage is collected: not among all that libraries made when they were imported.
    gc.freeze()
    process = os.getpid()
    for line in sys.stdin:
        request = Request.model_validate_json(line)
        outcome = measurer.measure(request)
        if os.getpid() != process:
            os._exit(1)  # a kernel forked, and its child came back here: one process answers, once
        _send(answers, outcome.model_copy(update={"number": request.number}))


def _own_stdout() -> TextIO:
    """Keep stdout for answers and send what libraries print to stderr."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return answers


def _send(answers: TextIO, message: BaseModel) -> None:
    answers.write(message.model_dump_json() + "\n")
    answers.flush()


if __name__ == "__main__":
    main()
