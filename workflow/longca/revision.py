"""The git revision of this code."""

import subprocess
from functools import cache
from pathlib import Path


@cache
def git_revision() -> str | None:
    """The revision this code is at, with + where files differ from it; None outside a checkout."""
    command = [
        "git",
        "-C",
        str(Path(__file__).parent),
        "describe",
        "--always",
        "--abbrev=12",
        "--dirty=+",
        "--exclude=*",
    ]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return answer.stdout.strip() or None
