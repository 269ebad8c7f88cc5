"""Measuring one case inside a worker: prepare, verify, time, weigh.

A cell is a case without its pass: forward and backward share their data, preparation, compiled code and verification.
"""

import gc
import math
import statistics
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from longca.cases import Case
from longca.kernels.interface import Kernel, Prepared, UnsupportedError
from longca.masks.blocks import BlockMap, load_block_map
from longca.masks.mask import Mask, read_mask
from longca.measure import device as devices
from longca.measure.failure import outcome_of
from longca.measure.memory import has_memory_back, peak_bytes
from longca.measure.protocol import Outcome, Request
from longca.measure.quality import doubts
from longca.measure.tensors import draw_tensors
from longca.measure.timing import first_call, time_calls, warm_up
from longca.measure.verify import Verdict, Verifier


class Cell:
    """A prepared kernel on its data, with what preparing and compiling took in milliseconds and whether it is right."""

    def __init__(
        self,
        kernel: Kernel,
        case: Case,
        mask: Mask | BlockMap,
        device: torch.device,
        gradients: bool,
        oracles: Path | None,
    ) -> None:
        self.case = case
        other = replace(case, pass_="backward")
        backward = kernel.support.reason_against(other, device.type, _capability(device)) is None
        tensors = draw_tensors(case, device, gradients and backward)
        # Before the kernel has its hands on the data: an oracle of what it wrote there would agree with it.
        self.verifier = Verifier(case, mask, tensors, oracles)
        start = time.perf_counter()
        self.prepared: Prepared = kernel.prepare(case, mask, tensors)
        self.prepare_ms = (time.perf_counter() - start) * 1e3
        if not gradients:
            self.prepared.backward = None
        self.first_ms = {"forward": first_call(self.prepared.forward, device)}
        self.flags = ["gradients_unverified"] if backward and not gradients else []
        start = time.perf_counter()
        self.verdict = self._verify(device)
        self.verified_for_s = time.perf_counter() - start - self.first_ms.get("backward", 0.0) / 1e3

    @property
    def prepared_for_s(self) -> float:
        """Seconds of preparing and of the first calls, which compile."""
        return (self.prepare_ms + sum(self.first_ms.values())) / 1e3

    def _verify(self, device: torch.device) -> Verdict:
        if self.prepared.backward is not None:
            try:
                self.first_ms["backward"] = first_call(self.prepared.backward, device)
                return self.verifier.check(self.prepared, gradients=True)
            except Exception:
                if self.case.pass_ == "backward":
                    raise
                # The backward case says why. The forward's figure stands, and says what was not checked.
                self.flags.append("gradients_unverified")
                self.prepared.backward = None
                free()
        return self.verifier.check(self.prepared, gradients=False)

    def call(self, pass_: str) -> Any:
        """The call that is timed for a pass. Raises UnsupportedError where the kernel has none."""
        call = self.prepared.forward if pass_ == "forward" else self.prepared.backward
        if call is None:
            raise UnsupportedError(f"has no {pass_} pass here")
        return call


class CellMeasurer:
    """Measures requests of one kernel, keeping the last cell for the other pass."""

    def __init__(self, kernel: Kernel, device: torch.device, missing: str | None) -> None:
        self.kernel, self.device, self.missing = kernel, device, missing
        self._cell: Cell | None = None

    def measure(self, request: Request) -> Outcome:
        """The outcome of one case, whatever it is; only a crash or a hang brings none."""
        case = Case(**request.case)
        reason = self.kernel.support.reason_against(case, self.device.type, _capability(self.device))
        if reason is not None:
            return Outcome(status="unsupported", reason=reason)
        if self.missing is not None:
            return Outcome(status="missing", reason=self.missing)
        start = time.monotonic()
        try:
            return self._measure(case, request) if request.repetitions else self._compile(case, request)
        except Exception as error:  # whatever a library raises is the outcome of this case
            # Most say no, or run out of memory, while they are prepared.
            outcome = outcome_of(error).model_copy(update={"prepared_for_s": time.monotonic() - start})
        # Here the error is gone, and with it what it held.
        if outcome.status == "out_of_memory":
            self._cell = None
            free()
            return outcome.model_copy(update={"clean": has_memory_back(self.device)})
        return outcome

    def _compile(self, case: Case, request: Request) -> Outcome:
        """Prepare and call each pass the kernel has, and nothing else."""
        mask = _read_mask(case, request)
        backward = replace(case, pass_="backward")
        refused = self.kernel.support.reason_against(backward, self.device.type, _capability(self.device))
        tensors = draw_tensors(case, self.device, gradients=refused is None)
        what = self.kernel.prepare(case, mask, tensors)
        first_call(what.forward, self.device)
        if what.backward is not None:
            first_call(what.backward, self.device)
        return Outcome(status="ok")

    def _measure(self, case: Case, request: Request) -> Outcome:
        earlier, cell = self._cell, self._cell_of(case, request)
        # What both passes share is paid by the first.
        prepared_for_s = 0.0 if cell is earlier else cell.prepared_for_s
        verified_for_s = 0.0 if cell is earlier else cell.verified_for_s
        common: dict[str, Any] = {
            "relative_error": cell.verdict.relative_error,
            "backend": cell.prepared.backend,
            "prepared_for_s": prepared_for_s,
            "verified_for_s": verified_for_s,
        }
        if cell.verdict.wrong:
            return Outcome(status="wrong", reason=cell.verdict.wrong, **common)
        call = cell.call(case.pass_)
        start = time.monotonic()
        repetitions = warm_up(call, self.device, request.warmups, request.repetitions, request.sampling_s)
        before = devices.state(self.device)
        samples = time_calls(call, self.device, repetitions)
        after = devices.state(self.device)
        timed_for_s = time.monotonic() - start
        start_of_check = time.monotonic()
        again = cell.verifier.check(cell.prepared, gradients=case.pass_ == "backward")
        common |= {
            "timed_from": start,
            "timed_for_s": timed_for_s,
            "verified_for_s": verified_for_s + time.monotonic() - start_of_check,
        }
        if again.wrong:
            common["relative_error"] = again.relative_error
            return Outcome(status="wrong", reason=f"after it was timed, {again.wrong}", **common)
        passes = ["forward"] if case.pass_ == "forward" else ["forward", "backward"]
        usual_ms = statistics.median(samples)
        cell.prepared.release()
        start_of_weighing = time.monotonic()
        peak_memory_bytes = peak_bytes(call, self.device)
        common["timed_for_s"] += time.monotonic() - start_of_weighing
        return Outcome(
            status="ok",
            samples_ms=[digits(sample) for sample in samples],
            peak_memory_bytes=peak_memory_bytes,
            prepare_ms=digits(cell.prepare_ms),
            compile_ms=digits(max(0.0, sum(cell.first_ms[name] for name in passes) - usual_ms)),
            flags=cell.flags + doubts(samples, before, after),
            peak_tflops=devices.peak_tflops(self.device),
            state={"before": before, "after": after},
            **common,
        )

    def _cell_of(self, case: Case, request: Request) -> Cell:
        same = self._cell is not None and replace(self._cell.case, pass_=case.pass_) == case
        if (
            self._cell is None
            or not same
            or (case.pass_ == "backward" and self._cell.prepared.backward is None)
        ):
            self._cell = None
            free()
            mask = _read_mask(case, request)
            oracles = Path(request.oracles) if request.oracles else None
            self._cell = Cell(self.kernel, case, mask, self.device, request.gradients, oracles)
        return self._cell


def _read_mask(case: Case, request: Request) -> Mask | BlockMap:
    path = Path(request.mask_file)
    return load_block_map(path) if case.family == "sparse" else read_mask(path)


def _capability(device: torch.device) -> tuple[int, int] | None:
    return torch.cuda.get_device_capability(device) if device.type == "cuda" else None


def digits(value: float) -> float:
    """Six significant digits: more would be noise."""
    return float(f"{value:.6g}") if math.isfinite(value) else value


def free() -> None:
    """Give the memory of what is no longer referred to back to the device."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
