"""Adapters of dense libraries: each gets the mask in the library's own form, or refuses it. Stand-ins compute."""

from contextlib import nullcontext

import cudnn_fake
import dense_fakes
import pytest
import torch
from sparse_fakes import attend
from test_dense import CPU, draw
from torch.nn.attention.flex_attention import noop_mask

from longca.cases import Case
from longca.kernels.interface import FallbackError, Tensors, UnsupportedError
from longca.kernels.native_form import FORMS, find_native_form, patterns_of
from longca.kernels.registry import load_kernel
from longca.kernels.sdpa_backend import prepare_sdpa
from longca.masks.patterns import PATTERNS
from longca.masks.views.support import views_of
from longca.measure.tensors import draw_tensors
from longca.measure.verify import Verifier

FAKES = {
    "fa": dense_fakes.flash_attention_1,
    "fa2": dense_fakes.flash_attention_2,
    "fa3": dense_fakes.flash_attention_3,
    "fa4": dense_fakes.flash_attention_4,
    "cudnn": cudnn_fake.cudnn_frontend,
    "flashinfer": dense_fakes.flashinfer,
}
NATIVE = {
    "full": "full",
    "causal": "causal",
    "full_document": "varlen full",
    "causal_document": "varlen causal",
    "full_sliding_window": "window",
    "causal_sliding_window": "causal window",
}
DOCUMENTS = [60, 1, 7, 69]


def a_case(kernel, pattern="causal", seqlen=137, heads=(4, 2), head_dim=64, dtype="float32", pass_="forward"):
    return Case("dense", kernel, "auto", pattern, seqlen, 0, *heads, head_dim, dtype, pass_)


def prepare(kernel, mask, heads=(4, 2), dtype="float32"):
    case = a_case(kernel, mask.pattern, mask.seqlen, heads, dtype=dtype)
    gradients = "backward" in load_kernel("dense", kernel).support.passes["cuda"]
    tensors = draw_tensors(case, CPU, gradients)
    verifier = Verifier(case, mask, tensors)
    prepared = load_kernel("dense", kernel).prepare(case, mask, tensors)
    return prepared, verifier.check(prepared, gradients).wrong


@pytest.mark.parametrize("kernel", FAKES)
@pytest.mark.parametrize("pattern", NATIVE)
def test_a_native_form_is_what_the_library_gets(monkeypatch, kernel, pattern):
    if pattern not in load_kernel("dense", kernel).support.patterns:
        pytest.skip("declares that it has no such form")
    FAKES[kernel](monkeypatch)
    heads = (3, 3) if kernel == "fa" else (6, 2)
    dtype = "bfloat16" if kernel == "cudnn" else "float32"
    prepared, wrong = prepare(kernel, draw(pattern, 137, DOCUMENTS), heads, dtype)
    assert wrong is None
    assert prepared.backend.endswith(f", {NATIVE[pattern]}")


@pytest.mark.parametrize("pattern", sorted(set(PATTERNS) - set(NATIVE)))
def test_fa4_computes_every_other_pattern_by_mask_mod_and_blocks(monkeypatch, pattern):
    dense_fakes.flash_attention_4(monkeypatch)
    prepared, wrong = prepare("fa4", draw(pattern, 300, [100, 1, 199]))
    assert wrong is None
    assert prepared.backend == "flash-attn 4, mask_mod and block sparsity"


def test_fa4_lays_blocks_out_for_hopper_alone(monkeypatch):
    dense_fakes.flash_attention_4(monkeypatch, capability=(10, 0))
    assert prepare("fa4", draw("causal", 137))[1] is None
    with pytest.raises(UnsupportedError, match="Hopper"):
        prepare("fa4", draw("global_sliding", 137))


@pytest.mark.parametrize("kernel", FAKES)
@pytest.mark.parametrize("seqlen", [1, 20, 21, 22])
def test_windows_as_wide_as_the_sequence(monkeypatch, kernel, seqlen):
    """SIZES' window is 20: at 21 tokens it holds all."""
    FAKES[kernel](monkeypatch)
    heads = (2, 2) if kernel == "fa" else (4, 2)
    dtype = "bfloat16" if kernel == "cudnn" else "float32"
    forms = {1: "full", 20: "causal", 21: "causal", 22: "causal window"}
    try:
        prepared, wrong = prepare(kernel, draw("causal_sliding_window", seqlen), heads, dtype)
    except UnsupportedError:
        assert kernel == "fa" and seqlen == 22
        return
    assert wrong is None and prepared.backend.endswith(f", {forms[seqlen]}")


def test_forms_are_those_of_the_views():
    of_a_view = {pattern for pattern in PATTERNS if {"window", "varlen"} & set(views_of(pattern))}
    assert patterns_of(FORMS) == of_a_view == set(NATIVE)
    assert {name: find_native_form(draw(name, 300, [100, 1, 199])).name for name in NATIVE} == NATIVE


def test_what_cudnn_refuses_of_the_backward_leaves_the_forward(monkeypatch):
    cudnn_fake.cudnn_frontend(monkeypatch, refused={"sdpa_backward"})
    mask, case = draw("causal", 137), a_case("cudnn", dtype="bfloat16")
    tensors = draw_tensors(case, CPU, True)
    prepared = load_kernel("dense", "cudnn").prepare(case, mask, tensors)
    assert Verifier(case, mask, tensors).check(prepared, gradients=False).wrong is None
    with pytest.raises(UnsupportedError, match="no engine for sdpa_backward"):
        prepared.backward()
    cudnn_fake.cudnn_frontend(monkeypatch, refused={"sdpa"})
    with pytest.raises(UnsupportedError, match="no engine for sdpa"):
        load_kernel("dense", "cudnn").prepare(case, mask, tensors)


def test_fa_counts_elements_in_32_bits(monkeypatch):
    dense_fakes.flash_attention_1(monkeypatch)
    case = a_case("fa", seqlen=1 << 18, heads=(64, 64), head_dim=128, dtype="bfloat16")
    q = torch.zeros(1, dtype=torch.bfloat16).expand(64, 1 << 18, 128)  # 2^31 elements over the memory of one
    with pytest.raises(UnsupportedError, match="32 bits"):
        load_kernel("dense", "fa").prepare(case, draw("causal", 1 << 10), Tensors(q, q, q, q, False))


def compiled_as(monkeypatch, reads_mask):
    """FlexAttention's compiled form over a BlockMask, which `reads_mask(blocks)` may leave unread."""

    def attention(q, k, v, block_mask, enable_gqa, kernel_options):
        assert kernel_options == {"BACKEND": "FLASH"} and enable_gqa
        rows, columns = q.shape[2], k.shape[2]
        kept = torch.ones(rows, columns, dtype=torch.bool)
        if block_mask is not None and reads_mask(block_mask):
            i, j = torch.arange(rows)[:, None], torch.arange(columns)
            full = block_cells(block_mask.full_kv_num_blocks, block_mask.full_kv_indices, rows, columns)
            partial = block_cells(block_mask.kv_num_blocks, block_mask.kv_indices, rows, columns)
            kept = full | partial & block_mask.mask_mod(torch.tensor(0), torch.tensor(0), i, j)
        return attend(q[0], k[0], v[0], kept)[None]

    monkeypatch.setattr(torch, "compile", lambda function, **options: attention)


def block_cells(counts, lists, rows, columns):
    return dense_fakes.kept_cells(counts[0], lists[0], rows, columns, 128)[0]


def has_a_mask_mod(blocks):
    """As torch 2.11 decides whether BACKEND=FLASH is given a mask at all."""
    return blocks.mask_mod not in (None, noop_mask)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_flex_flash_never_gives_a_mask_without_a_mask_mod(monkeypatch, pattern):
    compiled_as(monkeypatch, has_a_mask_mod)
    for seqlen, documents in ((300, [100, 1, 199]), (512, [128, 384])):
        prepared, wrong = prepare("flex_flash", draw(pattern, seqlen, documents))
        assert wrong is None
        form = "no mask" if pattern == "full" else "block mask"
        assert prepared.backend == f"flash-attn 4 by inductor, {form}"


@pytest.mark.parametrize("pattern", sorted(set(PATTERNS) - {"full"}))
def test_a_block_mask_that_is_ignored_is_wrong(monkeypatch, pattern):
    compiled_as(monkeypatch, lambda blocks: False)
    assert "errs by" in prepare("flex_flash", draw(pattern, 512, [128, 384]))[1]


def test_sdpa_math_is_asked_for_and_runs():
    for pattern in PATTERNS:
        prepared, wrong = prepare("sdpa_math", draw(pattern, 137, DOCUMENTS))
        assert wrong is None and prepared.backend.startswith("math, ")


def test_another_backend_than_the_one_asked_for_is_a_fallback(monkeypatch):
    monkeypatch.setattr(torch.nn.attention, "sdpa_kernel", lambda backend: nullcontext())
    case = a_case("sdpa_math")
    with pytest.raises(FallbackError, match="its flash for CPU path for is_causal, float32, 4-2 heads"):
        load_kernel("dense", "sdpa_math").prepare(case, draw("causal", 137), draw_tensors(case, CPU, True))


def test_a_backend_torch_refuses_is_unsupported():
    case = a_case("sdpa_cudnn")
    with pytest.raises(UnsupportedError, match="No viable backend"):
        prepare_sdpa(case, draw("causal", 137), draw_tensors(case, CPU, True), backend="CUDNN_ATTENTION")


# Each row: a case, a compute capability, and what stands in the reason against it; None where it is supported.
SUPPORT = [
    (a_case("fa", dtype="bfloat16", heads=(4, 4)), (9, 0), None),
    (a_case("fa", dtype="bfloat16"), (9, 0), "equal query and key-value heads only"),
    (
        a_case("fa", "causal_sliding_window", dtype="bfloat16", heads=(4, 4)),
        (9, 0),
        "no native form for causal window",
    ),
    (a_case("fa", dtype="bfloat16", heads=(4, 4), head_dim=192), (9, 0), "head_dim 192"),
    (a_case("fa2", dtype="bfloat16"), (8, 0), None),
    (a_case("fa2", dtype="bfloat16"), (7, 5), "from 8.0, not on 7.5"),
    (a_case("fa2", "prefix_lm_causal", dtype="bfloat16"), (9, 0), "no native form for prefix_lm_causal"),
    (a_case("fa2"), (9, 0), "does not compute in float32"),
    (a_case("fa3", "full_sliding_window", dtype="float16", pass_="backward"), (9, 0), None),
    (a_case("fa3", dtype="bfloat16"), (8, 9), "from 9.0 below 10.0, not on 8.9"),
    (a_case("fa3", dtype="bfloat16"), (10, 0), "from 9.0 below 10.0, not on 10.0"),
    (a_case("fa4", "global_sliding", dtype="bfloat16", pass_="backward"), (9, 0), None),
    (a_case("cudnn", "causal_document", dtype="bfloat16", pass_="backward"), (9, 0), None),
    (a_case("cudnn", "shared_question", dtype="bfloat16"), (9, 0), "no native form for shared_question"),
    (a_case("flex_flash", "causal_blockwise", dtype="bfloat16", pass_="backward"), (9, 0), None),
    (a_case("flashmask", "global_sliding", dtype="float16", pass_="backward"), (9, 0), None),
    (a_case("flashmask", dtype="bfloat16"), (8, 9), "from 9.0, not on 8.9"),
    (a_case("flashmask", dtype="bfloat16", head_dim=96), (9, 0), "head_dim 96"),
    (a_case("flashinfer", "causal_sliding_window", dtype="bfloat16"), (9, 0), None),
    (a_case("flashinfer", "full_sliding_window", dtype="bfloat16"), (9, 0), "no native form for window"),
    (a_case("flashinfer", dtype="bfloat16", pass_="backward"), (9, 0), "has no backward"),
    (a_case("sdpa_flash", "causal", dtype="bfloat16"), (9, 0), None),
    (a_case("sdpa_flash", "causal_document", dtype="bfloat16"), (9, 0), "no native form for varlen causal"),
    (a_case("sdpa_cudnn", "causal_document", dtype="bfloat16"), (9, 0), None),
    (a_case("sdpa_efficient"), (7, 0), None),
    (a_case("sdpa_math", "global_sliding"), None, None),
]


@pytest.mark.parametrize(("case", "capability", "reason"), SUPPORT)
def test_what_each_kernel_declares(case, capability, reason):
    said = load_kernel("dense", case.kernel).support.reason_against(case, "cuda", capability)
    assert said is None if reason is None else reason in said
