"""Our Video Sparse Attention in Triton's interpreter against float64, and compiled for Hopper without one."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from longca.masks.blocks import draw_block_map

pytest.importorskip("triton")
from longca.ops import video_sparse
from longca.ops.video_sparse.plan import choose_form

CASES = [
    "whole blocks, one head each",
    "the last block in part",
    "every block, the last in part",
    "less than a block",
    "one token",
    "odd group",
    "even group",
    "empty rows and columns",
]


def run(program, **environment):
    """What one of the programs beside this file prints."""
    done = subprocess.run(
        [sys.executable, program],
        cwd=Path(__file__).parent,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def results():
    return run("video_sparse_interpreted.py", TRITON_INTERPRET="1")


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    return run("video_sparse_compiled.py", TRITON_CACHE_DIR=str(tmp_path_factory.mktemp("triton")))


@pytest.mark.parametrize("name", CASES)
def test_agrees_with_float64(results, name):
    assert max(results[name]["errors"].values()) < 5e-6
    assert results[name]["empty_exact"]


def test_the_adapter_passes_the_gate(results):
    assert results["adapter"] == {"wrong": None, "backend": "triton, block lists"}


@pytest.mark.parametrize(
    ("variant", "forward"),
    [
        ("MHA 128", "forward_kernel"),
        ("GQA 128", "forward_kernel"),
        ("MHA 64", "forward_kernel"),
        ("GQA 64", "forward_kernel"),
        ("GQA 64, ragged", "forward_kernel"),
        ("gluon MHA", "gluon_forward_kernel"),
        ("gluon GQA", "gluon_forward_kernel"),
    ],
)
def test_every_kernel_compiles_for_hopper_and_stays_in_its_registers(compiled, variant, forward):
    kernels = compiled[variant]
    assert set(kernels) == {forward, "queries_kernel", "keys_kernel"}
    for name, kernel in kernels.items():
        assert not kernel["serialized"], name
        assert kernel["spilled_bytes"] == 0, name


@pytest.mark.parametrize("variant", ["MHA 128", "GQA 128", "MHA 64", "GQA 64", "GQA 64, ragged"])
def test_nothing_takes_the_registers_of_rows_that_every_step_reads(compiled, variant):
    # ptxas 12.8 gave them to the probabilities, at head_dim 64 and lengths that blocks divide
    assert not any(compiled[variant][name]["overwritten"] for name in ("forward_kernel", "queries_kernel"))


@pytest.mark.parametrize("variant", ["MHA 128", "gluon MHA", "gluon GQA"])
def test_two_programs_of_one_head_fit_an_sm(compiled, variant):
    # 228 KiB an SM, of which each program takes 1 KiB more than it asks for.
    kernels = compiled[variant]
    fit = {name: (228 << 10) // (kernel["shared_bytes"] + 1024) for name, kernel in kernels.items()}
    assert fit == dict.fromkeys(kernels, 2)


@pytest.mark.parametrize(
    ("seqlen", "head_dim", "capability", "form"),
    [
        (256, 128, (9, 0), "gluon"),
        (256, 64, (9, 0), "triton"),
        (250, 128, (9, 0), "triton"),
        (256, 128, (10, 0), "triton"),
    ],
)
def test_the_form_follows_the_shape_and_the_gpu(monkeypatch, seqlen, head_dim, capability, form):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    uniform = draw_block_map("uniform_block", seqlen, 64, 0.5, 2)
    assert choose_form(uniform, head_dim, torch.device("cuda")) == form
    assert choose_form(uniform, head_dim, torch.device("cpu")) == "triton"


def test_what_the_kernels_do_not_take_is_refused():
    uniform = draw_block_map("uniform_block", 256, 64, 0.5, 2)
    with pytest.raises(ValueError, match="q_heads 3 is no multiple of kv_heads 2"):
        video_sparse.plan(uniform, 3, 64, torch.device("cpu"))
    with pytest.raises(ValueError, match="variable_block: blocks must all have one size"):
        video_sparse.plan(replace(uniform, pattern="variable_block"), 4, 64, torch.device("cpu"))
    with pytest.raises(
        ValueError, match="head_dim 64: the gluon form takes whole blocks of 64 and head_dim 128"
    ):
        video_sparse.plan(uniform, 4, 64, torch.device("cpu"), "gluon")
    with pytest.raises(ValueError, match="form 'cuda' is not one of triton, gluon"):
        video_sparse.plan(uniform, 4, 64, torch.device("cpu"), "cuda")
    plan = video_sparse.plan(uniform, 4, 64, torch.device("cpu"))
    q, k = torch.zeros(4, 256, 64), torch.zeros(2, 256, 64)
    with pytest.raises(ValueError, match=r"v is \(2, 128, 64\)"):
        video_sparse.forward(q, k, k[:, :128], plan)
    wide = video_sparse.plan(uniform, 2, 128, torch.device("cpu"), "gluon")
    q = torch.zeros(2, 256, 128)
    with pytest.raises(ValueError, match=r"q is torch\.float32; the gluon form takes bfloat16 and float16"):
        video_sparse.forward(q, q, q, wide)
