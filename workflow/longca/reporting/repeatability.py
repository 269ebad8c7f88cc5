"""Whether runs compare: the control of each run and card, and cells that were measured twice."""

import statistics
from collections.abc import Sequence
from typing import NamedTuple

from longca.cases import study_series
from longca.measure.controls import TOLERANCE, Control, deviation, read_controls, references
from longca.measure.journal import Journal
from longca.measure.record import Record
from longca.measure.repeating import measured_records
from longca.reporting.names import results_of
from longca.reporting.sections import Section
from longca.reporting.words import digits, plain, words
from longca.study.model import Study


class Repeat(NamedTuple):
    """A cell measured twice: `ratio` is the second median latency over the first, None where they do not compare."""

    first: Record
    second: Record

    @property
    def ratio(self) -> float | None:
        """Of the same kernel's source and libraries on the same mask and model of device, both ok; else None."""
        same = all(_identity(one) == _identity(self.first) for one in self)
        if not same or self.first.latency_ms is None or self.second.latency_ms is None:
            return None
        return self.second.latency_ms.p50 / self.first.latency_ms.p50


def read_repeats(study: Study) -> list[Repeat]:
    """Every cell of a study that was measured again, beside its record. Raises LongcaError for a bad line."""
    files = sorted((results_of(study) / "repeats").glob("*.jsonl"))
    if not files:
        return []
    first = {
        record.case: record
        for one in study_series(study)
        for record in measured_records(results_of(study), one)
    }
    again = [record for file in files for record in Journal(file).keys().values()]
    return [Repeat(first[record.case], record) for record in again if record.case in first]


def repeat_sentence(repeats: Sequence[Repeat]) -> str:
    """How far apart two runs of a cell are: median and worst."""
    apart = [(abs(one.ratio - 1), one) for one in repeats if one.ratio is not None]
    if not apart:
        return "No cell was measured twice."
    worst, where = max(apart, key=lambda item: item[0])
    median = statistics.median(value for value, _ in apart)
    return (
        f"Of {len(repeats)} cells drawn at random and measured again in a run of their own {len(apart)} compare: "
        f"latencies differ by {median:.1%} at the median, {worst:.1%} at worst ({_place(where.first)})."
    )


def repeat_section(repeats: Sequence[Repeat]) -> Section:
    """Each cell that was measured twice."""
    headers = ("Kernel", "Pattern", "Length (tokens)", "Pass", "First (ms)", "Second (ms)", "Ratio")
    rows = tuple(
        (one.first.kernel, one.first.pattern, str(one.first.seqlen), one.first.pass_, *_latencies(one))
        for one in repeats
    )
    return Section("Cells measured twice, median latency", headers, rows, numeric=False)


def control_sentence(controls: Sequence[Control]) -> str:
    """How many controls there are, on how many cards, how far apart, and how many are off."""
    reference_ms = references(controls)
    offs = [off for one in controls if (off := deviation(one, reference_ms)) is not None]
    if not offs:
        return f"None of {len(controls)} controls could be measured."
    cards, failed = len({one.card for one in controls}), len(controls) - len(offs)
    beyond = sum(abs(off) > TOLERANCE for off in offs)
    return (
        f"{_many(len(offs), 'control')} on {_many(cards, 'card')}: {min(offs):+.1%} to {max(offs):+.1%} from their "
        f"median, {beyond} off by over {TOLERANCE:.0%}"
        + (f"; {failed} could not be measured." if failed else ".")
    )


def control_section(controls: Sequence[Control]) -> Section:
    """Each control: when, on which card, its latency and throughput, and how far from the median."""
    reference_ms = references(controls)
    rows = []
    for one in controls:
        off, record = deviation(one, reference_ms), one.record
        if off is None or record.latency_ms is None or record.tflops is None:
            told = (words(record.status), "–", "–")
        else:
            told = (digits(record.latency_ms.p50), digits(record.tflops), f"{off:+.1%}")
        rows.append(
            (record.measured_at, plain(one.card, 48), plain(str(record.environment["device"])), *told)
        )
    what = f"{controls[0].record.kernel}, {controls[0].record.pattern}, {controls[0].record.seqlen} tokens"
    headers = ("Measured", "Card", "Device", "Latency (ms)", "TFLOP/s", "From the median")
    return Section(f"Controls: {what}", headers, tuple(rows), numeric=False)


def comparability(study: Study) -> tuple[list[str], list[Section]]:
    """Sentences and tables on both; empty where a study has neither."""
    controls, repeats = read_controls(results_of(study)), read_repeats(study)
    sentences, sections = [], []
    if controls:
        sentences.append(control_sentence(controls))
        sections.append(control_section(controls))
    if repeats:
        sentences.append(repeat_sentence(repeats))
        sections.append(repeat_section(repeats))
    return sentences, sections


def _many(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _identity(record: Record) -> tuple[str, str, str]:
    return record.fingerprint, record.mask_digest, str(record.environment["device"])


def _place(record: Record) -> str:
    return f"{record.kernel} {record.pattern} {record.seqlen} {record.pass_}"


def _latencies(repeat: Repeat) -> tuple[str, str, str]:
    first, second = (
        words(record.status) if record.latency_ms is None else digits(record.latency_ms.p50)
        for record in repeat
    )
    return first, second, "does not compare" if repeat.ratio is None else f"{repeat.ratio:.3f}"
