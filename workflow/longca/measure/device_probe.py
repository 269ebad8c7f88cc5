"""Whether an NVIDIA GPU is here, asked without importing torch."""

import shutil
import subprocess


def gpus() -> list[str]:
    """Names and memory of the NVIDIA GPUs nvidia-smi lists; none where it is not there or fails."""
    if shutil.which("nvidia-smi") is None:
        return []
    command = ["nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader"]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=60)
    return answer.stdout.strip().splitlines() if answer.returncode == 0 else []


def has_gpu() -> bool:
    """Whether at least one GPU is listed."""
    return bool(gpus())
