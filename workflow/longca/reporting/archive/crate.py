"""The archive's own description: RO-Crate 1.1 metadata after the Workflow Run Crate profile 0.5.

Source: https://w3id.org/ro/crate/1.1 and https://w3id.org/ro/wfrun/workflow/0.5.
"""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from rocrate.model import ContextEntity, Entity
from rocrate.rocrate import ROCrate

METADATA = "ro-crate-metadata.json"
WORKFLOW = "Snakefile"
README = "README.md"
RUN = "#run"
_PROFILES = {
    "https://w3id.org/ro/wfrun/process/0.5": ("Process Run Crate", "0.5"),
    "https://w3id.org/ro/wfrun/workflow/0.5": ("Workflow Run Crate", "0.5"),
    "https://w3id.org/workflowhub/workflow-ro-crate/1.0": ("Workflow RO-Crate", "1.0"),
}
_LICENSE = "https://spdx.org/licenses/Apache-2.0"
_ENCODINGS = {
    "csv": "text/csv",
    "html": "text/html",
    "json": "application/json",
    "jsonl": "application/jsonl",
    "md": "text/markdown",
    "npz": "application/zip",
    "parquet": "application/vnd.apache.parquet",
    "pdf": "application/pdf",
    "py": "text/x-python",
    "svg": "image/svg+xml",
    "tex": "application/x-tex",
    "yaml": "application/yaml",
}
_RESULTS = ("records", "tables", "figures", "report.html")


class Entry(NamedTuple):
    """A file of the archive: its sha256 (hex) and size in bytes."""

    sha256: str
    size: int


class Run(NamedTuple):
    """What is told of the run: study, its config's name in the archive, the code's revision, when and where measured.

    first, last: ISO 8601 times of the first and the last measurement; nothing else in an archive is dated.
    """

    study: str
    config: str
    revision: str
    first: str
    last: str
    devices: tuple[str, ...]


def crate_metadata(run: Run, entries: Mapping[str, Entry]) -> str:
    """The content of ro-crate-metadata.json over the archive's other files, in their order."""
    crate = ROCrate(version="1.1")
    # The digest's term, which the context of RO-Crate 1.1 lacks.
    crate.metadata.extra_terms["sha256"] = "https://schema.org/sha256"
    _describe_root(crate, run)
    files = {name: _add(crate, name, entry, run) for name, entry in entries.items()}
    _describe_run(crate, run, files)
    return json.dumps(crate.metadata.generate(), sort_keys=True, indent=1, ensure_ascii=False) + "\n"


def _describe_root(crate: ROCrate, run: Run) -> None:
    root = crate.root_dataset
    root["name"] = f"longca study {run.study}"
    root["description"] = (
        f"Attention measured by the study {run.study}: its config, masks, records, tables, figures and report, and the "
        f"workflow that made them, at revision {run.revision}. Measured on {'; '.join(run.devices)}."
    )
    root["datePublished"] = run.last
    root["license"] = crate.add(
        ContextEntity(crate, _LICENSE, {"@type": "CreativeWork", "name": "Apache License 2.0"})
    )
    root["conformsTo"] = [
        crate.add(ContextEntity(crate, url, {"@type": "CreativeWork", "name": name, "version": version}))
        for url, (name, version) in _PROFILES.items()
    ]


def _add(crate: ROCrate, name: str, entry: Entry, run: Run) -> Entity:
    properties: dict[str, Any] = {
        "name": name,
        "contentSize": str(entry.size),
        "sha256": entry.sha256,
        # What is none of these is code or configuration.
        "encodingFormat": _ENCODINGS.get(name.rpartition(".")[2], "text/plain"),
    }
    if name == README:
        properties["about"] = crate.root_dataset
    if name != WORKFLOW:
        return crate.add_file(dest_path=name, properties=properties)
    told = {"name": "longca: measuring long-context attention", "version": run.revision}
    return crate.add_workflow(dest_path=name, properties=properties | told, main=True, lang="snakemake")


def _describe_run(crate: ROCrate, run: Run, files: Mapping[str, Entity]) -> None:
    made = tuple(f"results/{run.study}/{part}" for part in _RESULTS)
    action = crate.add_action(
        files[WORKFLOW],
        RUN,
        object=files[run.config],
        result=[entity for name, entity in files.items() if name.startswith(made)],
        properties={
            "name": f"Run of study {run.study}",
            "description": f"Masks drawn, kernels measured and results written as {run.config} asks, by Snakemake.",
            "startTime": run.first,
            "endTime": run.last,
            "actionStatus": "http://schema.org/CompletedActionStatus",
        },
    )
    crate.root_dataset["mentions"] = action
