"""Environments kept once: a record of a frozen study names its environment by digest, readers get it whole.

environments/<digest>.json beside records/ holds what the records of a session share; what differs from one to the next
(OWN) stays on the record. Every reader goes through `resolve`, so that a record's `environment` is always complete.
"""

import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

from longca.errors import LongcaError

FOLDER = "environments"
OWN = ("state", "control")


def shorten(environment: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The short form that stands on a record, and what its digest stands for."""
    own = {name: environment[name] for name in OWN if name in environment}
    shared = {name: value for name, value in environment.items() if name not in OWN}
    return {"digest": digest_of(shared)} | own, shared


def digest_of(shared: dict[str, Any]) -> str:
    """Sixteen hexadecimal digits that stand for an environment."""
    return hashlib.sha256(json.dumps(shared, sort_keys=True).encode()).hexdigest()[:16]


def environment_file(results: Path, digest: str) -> Path:
    """Where an environment stands in a study's results."""
    return results / FOLDER / f"{digest}.json"


def resolve(environment: dict[str, Any], file: Path, source: str) -> dict[str, Any]:
    """The whole environment of a record in `file`. Raises LongcaError where it is not there, or another."""
    digest = environment.get("digest")
    if digest is None:
        return environment
    folder = next((parent for parent in file.parents if (parent / FOLDER).is_dir()), None)
    if folder is None:
        raise LongcaError(
            f"{source}: environment: {digest} is kept in no folder {FOLDER} above; right: the study's results whole"
        )
    shared = _read(environment_file(folder.absolute(), str(digest)))
    return shared | {name: value for name, value in environment.items() if name != "digest"}


@cache
def _read(file: Path) -> dict[str, Any]:
    try:
        shared = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise LongcaError(f"{file}: cannot be read, and records refer to it: {error}") from error
    if not isinstance(shared, dict) or digest_of(shared) != file.stem:
        raise LongcaError(f"{file}: is not what its name says; right: the file as it was frozen")
    return shared
