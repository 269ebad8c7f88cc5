"""The process that runs a kernel: any number of cases, one at a time, asked for in lines of JSON on stdin.

    python -m longca.measure.worker FAMILY KERNEL DEVICE

It may crash, hang or run out of memory: the process that started it loses one case and starts another worker.
"""

import ctypes
import importlib
import os
import signal
import sys
from importlib import metadata
from typing import TextIO

from pydantic import BaseModel

from longca.kernels.registry import KernelModuleError, load_kernel
from longca.measure.protocol import Loaded, Ready, Request

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Serve requests until stdin ends."""
    family, name, wanted_device = sys.argv[1:]
    answers = _own_stdout()
    _die_with_parent()

    from longca.measure import device as devices

    device = devices.choose_device(wanted_device)
    _send(answers, Ready(device=device.type, environment=devices.describe(device)))  # type: ignore[arg-type]
    try:
        kernel = load_kernel(family, name)
    except KernelModuleError as error:
        _send(answers, Loaded(versions={}, missing=str(error), serves=False))
        return
    missing = _import_error(kernel.imports)
    _send(answers, Loaded(versions={name: _version(name) for name in kernel.distributions}, missing=missing))

    from longca.measure.cell import CellMeasurer

    measurer = CellMeasurer(kernel, device, missing)
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


def _die_with_parent() -> None:
    """A worker whose parent was killed must not go on occupying the device."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _send(answers: TextIO, message: BaseModel) -> None:
    answers.write(message.model_dump_json() + "\n")
    answers.flush()


def _import_error(modules: tuple[str, ...]) -> str | None:
    """Import a kernel's modules; the error of the first that fails, whatever a broken build raises, or None."""
    for module in modules:
        try:
            importlib.import_module(module)
        except Exception as error:  # a library built for another ABI raises anything
            return f"{type(error).__name__}: {error}"
    return None


def _version(distribution: str) -> str | None:
    """The installed version of a distribution; of a package put on the path without metadata, what it says itself."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        module = sys.modules.get(distribution.replace("-", "_"))
        return str(getattr(module, "__version__", None)) if module else None


if __name__ == "__main__":
    main()
