"""The control: one cell measured again and again, on every card, so that cells of different runs compare.

controls.jsonl of a study has a line each: its name `control`, the `card`, and the columns of a record. A record names
the control before it in its environment; whether that one was off is told when records are read (ControlFlags).
"""

import json
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from longca.cases import Case
from longca.errors import LongcaError
from longca.measure.budget import NO_LIMIT, Budget
from longca.measure.masks import case_mask
from longca.measure.record import Record, parse_record
from longca.measure.session import KernelSession
from longca.study.model import Study

# A control whose latency is further from the reference than this share makes the run's records doubtful.
TOLERANCE = 0.03
OFF, FAILED, NONE = "control_off", "control_failed", "uncontrolled"


@dataclass(frozen=True)
class Control:
    """One measurement of the control cell: its name among all, the card it ran on, and what came of it."""

    name: str
    card: str
    record: Record


class Controls:
    """Measures a study's control where none was measured on the card for a while; nothing where it has none."""

    def __init__(
        self, study: Study, results: Path, budget: Budget = NO_LIMIT, oracles: Path | None = None
    ) -> None:
        self.study, self.results, self._budget, self._oracles = study, results, budget, oracles

    def current(self, environment: Mapping[str, Any]) -> str | None:
        """The name of the control that holds for what is measured now on the device of a session's `environment`.

        Raises OutOfBudgetError where the budget ends before it is measured.
        """
        control = self.study.measure.control
        if control is None:
            return None
        card = card_of(environment)
        last = max(
            (one.record.measured_at for one in read_controls(self.results) if one.card == card), default=None
        )
        if last is not None and _age_s(last) < control.every:
            return _name(card, last)
        record = self._measure(control_case(self.study))
        line = {"control": _name(card, record.measured_at), "card": card} | json.loads(record.to_line())
        file = controls_file(self.results)
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("a", encoding="utf-8") as out:
            out.write(json.dumps(line) + "\n")
        return str(line["control"])

    def _measure(self, case: Case) -> Record:
        protocol = self.study.measure
        mask = case_mask(self.study, self.results, case)
        with KernelSession(case.family, case.kernel, protocol, self._budget, self._oracles) as session:
            timeout_s = self._budget.left(protocol.case_timeout)
            return session.measure(case, mask, self.results / case.mask_file, timeout_s)[0]


def control_case(study: Study) -> Case:
    """The case of a study's control: a dense forward."""
    control = study.measure.control
    assert control is not None
    shape = (*control.heads, control.head_dim, control.dtype)
    return Case("dense", control.kernel, "auto", control.pattern, control.seqlen, 0, *shape, "forward")


def controls_file(results: Path) -> Path:
    """Where a study's controls stand."""
    return results / "controls.jsonl"


def card_of(environment: Mapping[str, Any]) -> str:
    """The card, or on a CPU the host, that an environment is of."""
    return str(environment.get("gpu_uuid") or environment["host"])


def read_controls(results: Path) -> list[Control]:
    """Every control of a study, in the order they were measured; none where there is no file. Raises LongcaError."""
    file = controls_file(results)
    if not file.exists():
        return []
    found = []
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        source = f"{file}:{number}"
        try:
            columns = json.loads(line)
            name, card = str(columns.pop("control")), str(columns.pop("card"))
        except (ValueError, AttributeError, TypeError, KeyError) as error:
            raise LongcaError(f"{source}: is no control ({error}); right: remove that line") from error
        found.append(Control(name, card, parse_record(json.dumps(columns), source)))
    return found


def references(controls: Sequence[Control]) -> dict[tuple[str, Case], float]:
    """By device and case, the median latency in milliseconds of the controls that are ok."""
    latencies: dict[tuple[str, Case], list[float]] = {}
    for one in controls:
        if one.record.latency_ms is not None:
            latencies.setdefault(_kind(one), []).append(one.record.latency_ms.p50)
    return {kind: statistics.median(values) for kind, values in latencies.items()}


def deviation(control: Control, reference_ms: Mapping[tuple[str, Case], float]) -> float | None:
    """A control's latency over its reference, less one; None where it has none."""
    latency = control.record.latency_ms
    return None if latency is None else latency.p50 / reference_ms[_kind(control)] - 1


class ControlFlags:
    """The doubt that controls cast on records: control_off, control_failed, or uncontrolled where there is none."""

    def __init__(self, controls: Sequence[Control]) -> None:
        self._controls = {one.name: one for one in controls}
        self._reference_ms = references(controls)

    def on(self, record: Record) -> Record:
        """The record with its control's flag; only an ok one has a number to doubt.

        Context parallel has none: its own W = 1 is measured beside it.
        """
        doubtful = record.status == "ok" and record.family != "context_parallel"
        flag = self._flag(record) if doubtful else None
        if flag is None or flag in record.flags:
            return record
        return record.model_copy(update={"flags": [*record.flags, flag]})

    def _flag(self, record: Record) -> str | None:
        control = self._controls.get(str(record.environment.get("control")))
        if control is None:
            return NONE
        off = deviation(control, self._reference_ms)
        if off is None:
            return FAILED
        return OFF if abs(off) > TOLERANCE else None


def _kind(control: Control) -> tuple[str, Case]:
    return str(control.record.environment["device"]), control.record.case


def _name(card: str, measured_at: str) -> str:
    return f"{card} {measured_at}"


def _age_s(measured_at: str) -> float:
    return time.time() - datetime.fromisoformat(measured_at).astimezone(UTC).timestamp()
