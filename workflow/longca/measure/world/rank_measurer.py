"""Measuring one case on a rank, together with the other ranks: prepare, verify, time, weigh, count.

Whatever a rank finds before anything is sent, all ranks agree on. What goes wrong after that is one rank's: it answers,
the others may wait for it forever, and who asked ends them all.
"""

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from pydantic import TypeAdapter

from longca.cases import Case
from longca.masks.mask import read_mask
from longca.measure import device as devices
from longca.measure.cell import digits, free
from longca.measure.failure import outcome_of
from longca.measure.protocol import Outcome, Request
from longca.measure.quality import doubts
from longca.measure.world.carrying import shared_memory
from longca.measure.world.findings import RankFindings, combined, miscounted
from longca.measure.world.place import Place
from longca.measure.world.rank_cell import RankCell
from longca.measure.world.timing import repetitions_for, time_in_turns
from longca.measure.world.together import PATIENCE, Together
from longca.parallel.groups import Groups
from longca.parallel.local_form import LocalForm
from longca.parallel.topology import Topology

_CASES: TypeAdapter[Case] = TypeAdapter(Case)


class RankMeasurer:
    """Measures requests on one rank, keeping the last cell for the other pass and the groups for the next case."""

    def __init__(self, form: LocalForm, place: Place, device: torch.device, missing: str | None) -> None:
        self.form, self.place, self.device = form, place, device
        self.together = Together()
        # On one machine of several the library may not be there: then it is missing for all.
        self.missing = next(filter(None, self.together.gather(missing)), None)
        self._capability = torch.cuda.get_device_capability(device) if device.type == "cuda" else None
        self._memory = shared_memory(place, device, self.together)
        self._groups: Groups | None = None
        self._cell: RankCell | None = None

    def measure(self, request: Request) -> Outcome:
        """The outcome of one case on this rank; rank 0's has the numbers of all ranks."""
        case = _CASES.validate_python(request.case)
        reason = self.form.support.reason_against(case, self.device.type, self._capability)
        if reason is not None:
            return Outcome(status="unsupported", reason=reason)
        if self.missing is not None:
            return Outcome(status="missing", reason=self.missing)
        refusal = self._prepare(case, request)
        if refusal is not None:
            self._cell = None
            return refusal
        try:
            return self._measure(case, request)
        except Exception as error:  # whatever a library raises is the outcome of this case
            return self._of_this_rank(outcome_of(error))

    def _prepare(self, case: Case, request: Request) -> Outcome | None:
        """Make the cell, or what the first rank that cannot says of it."""
        if self._cell is not None and replace(self._cell.case, pass_=case.pass_) == case:
            return None
        self._cell = None
        free()
        assert case.arrangement is not None
        groups, own = self._groups_of(case.arrangement.topology), None
        try:
            mask = read_mask(Path(request.mask_file))
            oracles = Path(self.place.oracles)
            self._cell = RankCell(self.form, case, mask, groups, self.device, self.together, oracles)
        except Exception as error:  # agreed on below
            own = self._of_this_rank(outcome_of(error))
        found = [text for text in self.together.gather(own and own.model_dump_json()) if text]
        return Outcome.model_validate_json(found[0]) if found else None

    def _groups_of(self, topology: Topology) -> Groups:
        if self._groups is None or self._groups.topology != topology:
            if self._groups is not None:
                self._groups.close()
            self._groups = Groups(topology, timeout=PATIENCE, memory=self._memory)
        return self._groups

    def _measure(self, case: Case, request: Request) -> Outcome:
        cell = self._cell
        assert cell is not None
        fresh = cell.is_fresh
        start_of_check = time.monotonic()
        wrong = cell.verify()
        verified_for_s = time.monotonic() - start_of_check
        if wrong is not None:
            return wrong
        call = cell.calls(case.pass_)
        before = devices.state(self.device)
        start = time.monotonic()
        repetitions = repetitions_for(
            call.whole, self.device, self.together, request.warmups, request.repetitions, request.sampling_s
        )
        whole_ms, computation_ms, communication_ms = time_in_turns(
            [call.whole, call.computation, call.communication],
            self.device,
            self.together,
            repetitions,
            flushes=self.place.local_rank == 0,
        )
        timed_for_s = time.monotonic() - start
        after = devices.state(self.device)
        start_of_check = time.monotonic()
        wrong = cell.verify_again(case.pass_)
        if wrong is not None:
            return wrong
        common: dict[str, Any] = {"backend": cell.backend, "relative_error": cell.relative_error}
        findings = RankFindings(
            whole_ms,
            computation_ms,
            communication_ms,
            sent_bytes=cell.sent_bytes(case.pass_),
            rows=cell.mechanism.shard.rows,
            peak_bytes=cell.peak_bytes(case.pass_),
            prepare_ms=cell.prepare_ms,
            first_ms=cell.first_ms(case.pass_),
        )
        ranks = self.together.gather(findings)
        fault = miscounted(case, cell, ranks)
        if fault is not None:
            return Outcome(status="wrong", reason=fault, **common)
        columns = combined(cell, ranks)
        flags = doubts(columns["samples_ms"], before, after) + self._oversubscribed() + cell.flags
        return Outcome(
            status="ok",
            flags=flags,
            peak_tflops=devices.peak_tflops(self.device),
            state={"before": before, "after": after},
            timed_from=start,
            timed_for_s=timed_for_s,
            prepared_for_s=digits(cell.prepare_ms / 1e3) if fresh else 0.0,
            verified_for_s=verified_for_s + time.monotonic() - start_of_check,
            **common,
            **columns,
        )

    def _oversubscribed(self) -> list[str]:
        """More threads than cores: the ranks take turns on them, and their times say little."""
        if self.device.type != "cpu":
            return []
        wanted = self.place.local_size * self.place.threads
        return ["oversubscribed"] if wanted > _cores() else []

    def _of_this_rank(self, outcome: Outcome) -> Outcome:
        if self.place.world_size == 1 or outcome.status == "unsupported":
            return outcome
        return outcome.model_copy(update={"reason": f"rank {self.place.rank}: {outcome.reason}"})


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
