"""Compiles for Hopper, on a machine without a GPU, every kernel that a call would launch; prints JSON.

A program of its own, because it puts a stand-in for the GPU driver into Triton.
"""

import hashlib
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.runtime.driver import driver
from triton.runtime.jit import JITFunction

from longca.ops import segments
from longca.ops.segments import device_plan

PTXAS = Path(triton.__file__).parent / "backends/nvidia/bin/ptxas"


class Hopper:
    """What Triton asks a driver for before it compiles."""

    def get_current_device(self):
        return 0

    def get_current_stream(self, device):
        return 0

    def get_current_target(self):
        return GPUTarget("cuda", 90, 32)

    def get_active_torch_device(self):
        return torch.device("cpu")


def disassembled(kernel):
    """The kernel as ptxas assembles it."""
    with tempfile.TemporaryDirectory() as folder:
        ptx, cubin = Path(folder) / "kernel.ptx", Path(folder) / "kernel.cubin"
        ptx.write_text(kernel.asm["ptx"])
        subprocess.run([PTXAS, "--gpu-name=sm_90a", ptx, "-o", cubin], capture_output=True, check=True)
        command = [PTXAS.with_name("nvdisasm"), "-c", cubin]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def assembled(kernel):
    """Spilled bytes; whether products in flight are waited for where the source does not say so; a digest."""
    with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
        file.write(kernel.asm["ptx"])
        file.flush()
        command = [PTXAS, "-v", "--gpu-name=sm_90a", file.name, "-o", "/dev/null"]
        log = subprocess.run(command, capture_output=True, text=True, check=True)
    text = log.stdout + log.stderr
    spilled = sum(map(int, re.findall(r"(\d+) bytes spill stores", text)))
    return {
        "spilled_bytes": spilled,
        "serialized": bool(re.search(r"C75(12|14|17)", text)),
        "digest": hashlib.sha256(kernel.asm["ptx"].encode()).hexdigest(),
    }


CAUSAL = [(0, 256, 0, 256, "causal")]
FULL = [(0, 256, 0, 2048, "full")]
# Runs of 64 keys, far apart: the narrow forward tile fits them.
BLOCKS = [(0, 128, first, first + 64, "full") for first in range(0, 2048, 256)]


ORDERS = {"inside": "heads_inside", "after": "longest_first"}


def compile_all(backend, dim, dtype, deterministic=False, slices=CAUSAL, heads="inside", tall=False):
    """heads: the order a backward walks, all heads of a row together ("inside") or one head "after" another.

    tall: whether the forward takes tall tiles.
    """
    device_plan._backward_order = lambda columns, shape: ORDERS[heads]
    device_plan.TALL_RUN_STEPS = 0
    device_plan._tall_ends_earlier = lambda *_: tall
    kernels = {}

    def launch(kernel, grid):
        def record(*arguments, **constants):
            kernels[kernel.__name__] = assembled(kernel.warmup(*arguments, grid=grid, **constants))

        return record

    JITFunction.__getitem__ = launch
    q, k = torch.zeros(4, 256, dim, dtype=dtype), torch.zeros(2, 2048, dim, dtype=dtype)
    plan = segments.plan(slices, 256, 2048, 4, 2, dim, dtype, "cpu", backend, deterministic=deterministic)
    out, lse = segments.forward(q, k, k, plan)
    segments.backward(q, k, k, out, lse, q, plan)
    return kernels


if __name__ == "__main__":
    driver.set_active(Hopper())
    json.dump(
        {
            "gluon 128": compile_all("gluon", 128, torch.bfloat16),
            "gluon 64": compile_all("gluon", 64, torch.float16),
            "gluon narrow": compile_all("gluon", 128, torch.bfloat16, slices=BLOCKS),
            "gluon deterministic long": compile_all("gluon", 128, torch.bfloat16, True, tall=True),
            "gluon deterministic": compile_all("gluon", 128, torch.bfloat16, True),
            "gluon whole": compile_all("gluon", 128, torch.bfloat16, slices=FULL),
            "gluon tall": compile_all("gluon", 128, torch.bfloat16, tall=True),
            "gluon tall whole": compile_all("gluon", 128, torch.bfloat16, slices=FULL, tall=True),
            "gluon whole after": compile_all("gluon", 128, torch.bfloat16, slices=FULL, heads="after"),
            "gluon 64 whole after": compile_all("gluon", 64, torch.float16, slices=FULL, heads="after"),
            "gluon 128 after": compile_all("gluon", 128, torch.bfloat16, heads="after"),
            "gluon 64 after": compile_all("gluon", 64, torch.float16, heads="after"),
            "gluon deterministic after": compile_all("gluon", 128, torch.bfloat16, True, heads="after"),
            "triton 128": compile_all("triton", 128, torch.bfloat16),
        },
        sys.stdout,
    )
