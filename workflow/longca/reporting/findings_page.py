"""What a study found, as a page of Markdown: the report's findings, of its records alone."""

from pathlib import Path

from longca.reporting.cells import WITHIN_SPREAD
from longca.reporting.markdown import escape
from longca.reporting.names import results_of, table_names
from longca.reporting.parts.findings import findings
from longca.reporting.parts.part import ReportData
from longca.reporting.parts.statuses import statuses
from longca.reporting.provenance import machines
from longca.reporting.tables import made_table
from longca.reporting.words import words
from longca.study.model import Study


def findings_page(study: Study, config: Path) -> str:
    """The findings of a study under a heading each, after what they rest on. Raises LongcaError as `collect` does."""
    rows = {name: made_table(study, name).to_pylist() for name in table_names(study)}
    data = ReportData(study, config, rows)
    counts = statuses(data)
    seen = ", ".join(f"{counts['total'][status]} {words(status)}" for status in counts["seen"])
    devices = ", ".join(map(escape, machines(data.measured)))
    lines = [
        f"# What {results_of(study)} says",
        "",
        f"Computed from the records by `longca findings --study {config}`.",
        f"{counts['cases']} cases on {devices}: {seen}.",
        f"Only verified measurements rank; of two kernels within the spread ({WITHIN_SPREAD}) none leads.",
    ]
    for finding in findings(data)["findings"]:
        lines += ["", f"## {escape(finding.heading)}", ""]
        lines += [f"- **{escape(subject)}**: {escape(sentence)}" for subject, sentence in finding.sentences]
    return "\n".join(lines) + "\n"
