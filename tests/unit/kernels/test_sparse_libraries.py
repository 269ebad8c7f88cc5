"""Adapters of block-sparse libraries: each gets every KV head's own blocks in its own form. Stand-ins compute."""

import pytest
import sparse_fakes
import torch

from longca.cases import Case
from longca.kernels.interface import FallbackError, UnsupportedError
from longca.kernels.registry import load_kernel
from longca.kernels.sparse import flex
from longca.kernels.sparse.flashinfer import listed_keys
from longca.masks.blocks import draw_block_map
from longca.measure.tensors import draw_tensors
from longca.measure.verify import Verifier

CPU = torch.device("cpu")
FAKES = {
    "vsa": sparse_fakes.fastvideo,
    "fa4": sparse_fakes.flash_attention_4,
    "flashinfer": sparse_fakes.flashinfer,
    "fa2_sparse": sparse_fakes.block_sparse_attn,
}


def a_case(kernel, pattern="uniform_block", seqlen=512, block=128, heads=(4, 2), pass_="forward", **more):
    values = {"head_dim": 64, "dtype": "bfloat16"} | more
    return Case(
        "sparse",
        kernel,
        "auto",
        pattern,
        seqlen,
        0,
        *heads,
        values["head_dim"],
        values["dtype"],
        pass_,
        block,
        0.3,
    )


def prepare(kernel, case, block_map):
    gradients = "backward" in load_kernel("sparse", kernel).support.passes["cuda"]
    tensors = draw_tensors(case, CPU, gradients)
    return load_kernel("sparse", kernel).prepare(case, block_map, tensors), tensors, gradients


def draw(case, seed=42):
    return draw_block_map(case.pattern, case.seqlen, case.block, case.density_nominal, case.kv_heads, seed)


@pytest.mark.parametrize(
    ("kernel", "pattern", "block", "heads"),
    [
        ("vsa", "uniform_block", 64, (3, 3)),
        ("fa4", "uniform_block", 128, (4, 2)),
        ("fa4", "uniform_block", 64, (6, 2)),
        ("flashinfer", "uniform_block", 64, (4, 2)),
        ("flashinfer", "uniform_block", 128, (3, 3)),
        ("flashinfer", "variable_block", 256, (4, 2)),
        ("fa2_sparse", "uniform_block", 128, (4, 2)),
        ("fa2_sparse", "uniform_block", 128, (3, 3)),
    ],
)
def test_the_library_computes_the_map_of_each_head(monkeypatch, kernel, pattern, block, heads):
    FAKES[kernel](monkeypatch)
    case = a_case(kernel, pattern, block=block, heads=heads, dtype="float32")
    prepared, tensors, gradients = prepare(kernel, case, draw(case))
    assert Verifier(case, draw(case), tensors).check(prepared, gradients).wrong is None
    assert Verifier(case, draw(case, seed=7), tensors).check(prepared, gradients).wrong is not None


def test_flashinfer_says_which_of_its_backends_was_planned(monkeypatch):
    sparse_fakes.flashinfer(monkeypatch)
    case = a_case("flashinfer")
    assert prepare("flashinfer", case, draw(case))[0].backend == "fa3, variable blocks"


def test_more_keys_than_flashinfer_can_number_are_refused_before_they_are_listed(monkeypatch):
    sparse_fakes.flashinfer(monkeypatch)
    case = a_case("flashinfer", "variable_block", block=256)
    drawn = draw(case)
    keys = sum(
        int(size)
        for head in range(drawn.kv_heads)
        for row in drawn.kept[head]
        for size in drawn.column_sizes[head][row]
    )
    assert listed_keys(drawn) == keys
    monkeypatch.setattr("longca.kernels.sparse.flashinfer._MOST_INDICES", keys)
    prepare("flashinfer", case, drawn)
    monkeypatch.setattr("longca.kernels.sparse.flashinfer._MOST_INDICES", keys - 1)
    with pytest.raises(UnsupportedError, match=f"lists {keys} keys"):
        prepare("flashinfer", case, drawn)


def test_vsa_never_runs_as_triton_unsaid(monkeypatch):
    sparse_fakes.fastvideo(monkeypatch)
    case = a_case("vsa", block=64, heads=(2, 2))
    monkeypatch.setenv("FASTVIDEO_KERNEL_VSA_FORCE_TRITON", "1")
    with pytest.raises(FallbackError, match="FASTVIDEO_KERNEL_VSA_FORCE_TRITON=1"):
        prepare("vsa", case, draw(case))
    monkeypatch.setenv("FASTVIDEO_KERNEL_VSA_FORCE_TRITON", "0")
    prepare("vsa", case, draw(case))
    sparse_fakes.install(monkeypatch, "fastvideo_kernel._C", fastvideo_kernel_ops=object())
    with pytest.raises(FallbackError, match="no block-sparse kernels"):
        prepare("vsa", case, draw(case))


# Each row: a case and what stands in the reason against it; None where it is supported.
SUPPORT = [
    (a_case("vsa", block=64, heads=(4, 4)), None),
    (a_case("vsa", block=64, heads=(4, 4), pass_="backward"), None),
    (a_case("vsa", block=128, heads=(4, 4)), "blocks of 64 tokens only"),
    (a_case("vsa", block=64), "equal query and key-value heads only"),
    (a_case("vsa", block=64, heads=(4, 4), seqlen=1000), "a multiple of 64"),
    (a_case("vsa", block=64, heads=(4, 4), dtype="float16"), "does not compute in float16"),
    (a_case("vsa", "variable_block", heads=(4, 4)), "one size"),
    (a_case("vsa_triton", block=64, seqlen=1000, pass_="backward"), None),
    (a_case("vsa_triton"), "blocks of 64 tokens only"),
    (a_case("vsa_triton", "variable_block", block=300), "one size"),
    (a_case("fa2_sparse"), None),
    (a_case("fa2_sparse", pass_="backward"), "only the forward"),
    (a_case("fa2_sparse", block=64), "blocks of 128 tokens only"),
    (a_case("flashinfer", "variable_block", block=512, seqlen=1000), None),
    (a_case("flashinfer", pass_="backward"), "has no backward"),
    (a_case("fa4"), None),
    (a_case("fa4", pass_="backward"), None),
    (a_case("fa4", block=64), None),
    (a_case("fa4", block=64, pass_="backward"), "blocks of 128 tokens only (backward)"),
    (a_case("fa4", seqlen=1088), "a multiple of 128"),
    (a_case("flex", block=64, pass_="backward"), None),
    (a_case("segments", "variable_block", block=300, seqlen=1001, pass_="backward"), None),
]


@pytest.mark.parametrize(("case", "reason"), SUPPORT)
def test_what_each_kernel_declares(case, reason):
    said = load_kernel("sparse", case.kernel).support.reason_against(case, "cuda")
    assert said is None if reason is None else reason in said


@pytest.mark.parametrize(("block", "tile"), [(64, 64), (192, 64), (32, 32), (96, 32)])
def test_flex_takes_a_tile_that_divides_the_block(block, tile):
    options = flex.tile_options(block)
    assert {value for name, value in options.items() if "BLOCK" in name} == {tile}
    assert {name[:4] for name in options if "BLOCK" in name} == {"fwd_", "bwd_"}


def test_flex_refuses_blocks_that_no_tile_divides():
    with pytest.raises(UnsupportedError, match="blocks of 80 tokens"):
        flex.tile_options(80)
