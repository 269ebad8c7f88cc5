"""Which NVIDIA GPUs are here, asked without importing torch."""

import os
import shutil
import subprocess


def gpus() -> list[str]:
    """Name and memory of each GPU that a process may use; of a slice its identity, which is all that is known."""
    listed = dict(zip(_query("uuid"), _query("name,memory.total"), strict=False))
    return [listed.get(one, one) for one in visible_gpus()]


def has_gpu() -> bool:
    """Whether there is a GPU that a process may use."""
    return bool(visible_gpus())


def visible_gpus() -> list[str]:
    """Identities of the GPUs that a process may use, as CUDA_VISIBLE_DEVICES takes them and in its order.

    A number there is taken as nvidia-smi counts. A slice of a GPU (MIG) is known by the variable alone.
    There are none where nvidia-smi is not there or fails.
    """
    listed = _query("uuid")
    wanted = os.environ.get("CUDA_VISIBLE_DEVICES")
    if wanted is None or not listed:
        return listed
    found = []
    for name in wanted.split(","):
        one = _identity(name.strip(), listed)
        if one is None:
            break  # as CUDA does: what stands behind a name that is not there is not seen
        found.append(one)
    return found


def _identity(name: str, listed: list[str]) -> str | None:
    if name.isdigit():
        return listed[int(name)] if int(name) < len(listed) else None
    if name.startswith("MIG-"):
        return name
    return next((one for one in listed if name and one.startswith(name)), None)


def _query(fields: str) -> list[str]:
    if shutil.which("nvidia-smi") is None:
        return []
    command = ["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader"]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=60)
    return answer.stdout.strip().splitlines() if answer.returncode == 0 else []
