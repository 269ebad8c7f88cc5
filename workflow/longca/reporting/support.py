"""The support table: what each kernel declares it can do, beside what was seen."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from longca.kernels.interface import Support
from longca.kernels.registry import KernelModuleError, load_kernel
from longca.reporting.collect import CaseRecord
from longca.reporting.long import Row
from longca.reporting.sections import Section
from longca.reporting.words import NOT_MEASURED, count, plain, status_words
from longca.study.model import Study

SUPPORT_COLUMNS = {
    **dict.fromkeys(
        ("family", "kernel", "pattern", "pass", "device_type", "declared", "declared_reason"), pa.string()
    ),
    **dict.fromkeys(("measured", "measured_reason"), pa.string()),
    "cases": pa.int64(),
}
SUPPORTED = "supported"

# A kernel's family and name, a pattern and a pass.
_Key = tuple[str, str, str, str]


def support_rows(study: Study, collected: Sequence[CaseRecord]) -> list[Row]:
    """One row a family, kernel, pattern and pass on each type of device (cpu, cuda): declared and measured.

    What was measured on one type of device stands beside what is declared for that one. Before anything is
    measured the types are those the study allows. A kernel whose module cannot be imported is `missing`.
    """
    seen = dict.fromkeys(device_type(item.record.environment) for item in collected if item.record)
    allowed = ("cpu", "cuda") if study.measure.device == "auto" else (study.measure.device,)
    groups: dict[_Key, list[CaseRecord]] = {}
    for item in collected:
        case = item.case
        groups.setdefault((case.family, case.kernel, case.pattern, case.pass_), []).append(item)
    # Once a kernel: an import that fails is tried anew each time.
    declared = {kernel: _declaration(*kernel) for kernel in dict.fromkeys(key[:2] for key in groups)}
    return [
        _row(key, declared[key[:2]], items, kind)
        for kind in tuple(seen) or allowed
        for key, items in groups.items()
    ]


def device_type(environment: Mapping[str, Any]) -> str:
    """cuda or cpu: only a GPU has a compute capability."""
    return "cuda" if environment.get("compute_capability") else "cpu"


def support_sections(rows: Sequence[Row]) -> list[Section]:
    """Kernel x pattern: declared, measured and why; a section a pass, family and type of device."""
    groups: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["family"], row["pass"], row["device_type"]), []).append(row)
    ordered = sorted(groups.items(), key=lambda item: item[0][1] != "forward")
    return [_section(*key, group) for key, group in ordered]


def _declaration(family: str, kernel: str) -> Support | str:
    """What a kernel declares, or why it cannot."""
    try:
        return load_kernel(family, kernel).support
    except KernelModuleError as error:
        return str(error)


def _declared(support: Support | str, items: Sequence[CaseRecord], kind: str) -> tuple[str, str | None]:
    """What is declared of these cases, as a word, and why it is not `supported`."""
    if isinstance(support, str):
        return "missing", support
    against = [support.reason_against(item.case, kind) for item in items]
    refused = [reason for reason in against if reason is not None]
    if not refused:
        return SUPPORTED, None
    word = "unsupported" if len(refused) == len(items) else "partly supported"
    return word, "; ".join(dict.fromkeys(refused))


def _row(key: _Key, support: Support | str, items: list[CaseRecord], kind: str) -> Row:
    family, kernel, pattern, pass_ = key
    declared, declared_reason = _declared(support, items, kind)
    here = [r for item in items if (r := item.record) and device_type(r.environment) == kind]
    statuses = [record.status for record in here]
    unmeasured = len(items) - len(here)
    return {
        "family": family,
        "kernel": kernel,
        "pattern": pattern,
        "pass": pass_,
        "device_type": kind,
        "declared": declared,
        "declared_reason": declared_reason,
        "measured": status_words(count([*statuses, *[NOT_MEASURED] * unmeasured])),
        "measured_reason": "; ".join(dict.fromkeys(r.reason for r in here if r.reason)) or None,
        "cases": len(items),
    }


def _section(family: str, pass_: str, kind: str, rows: list[Row]) -> Section:
    return Section(
        f"{pass_.capitalize()} support of {family} kernels on {kind}: declared, and what was measured",
        ("Kernel", "Pattern", "Declared", "Measured", "Why not"),
        tuple((row["kernel"], row["pattern"], row["declared"], row["measured"], _why(row)) for row in rows),
        numeric=False,
    )


def _why(row: Row) -> str:
    reasons = dict.fromkeys(reason for reason in (row["declared_reason"], row["measured_reason"]) if reason)
    return plain("; ".join(reasons)) or "–"
