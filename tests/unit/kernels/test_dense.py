"""Every dense kernel that runs on a CPU computes every pattern, forward and gradients, at awkward shapes."""

import random

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from longca.cases import Case
from longca.kernels.dense.flex import NO_BACKWARD_ON_CPU
from longca.kernels.interface import FallbackError, from_layout, to_layout
from longca.kernels.registry import load_kernel
from longca.masks.mask import Mask, draw_mask
from longca.masks.patterns import PATTERNS
from longca.measure.tensors import draw_tensors
from longca.measure.verify import Verifier

CPU = torch.device("cpu")
SIZES = {"window": 20, "global_tokens": 9, "block": 32}


def draw(pattern: str, seqlen: int, documents: list[int] | None = None) -> Mask:
    takes = PATTERNS[pattern]
    parameters = {name: SIZES[name] for name in takes.parameters if name in SIZES}
    return draw_mask(
        pattern, seqlen, parameters=parameters, documents=documents if takes.takes_documents else None
    )


def check(
    kernel: str,
    mask: Mask,
    heads: tuple[int, int],
    head_dim: int = 64,
    dtype: str = "float32",
    gradients: bool = True,
):
    case = Case("dense", kernel, "auto", mask.pattern, mask.seqlen, 0, *heads, head_dim, dtype, "forward")
    tensors = draw_tensors(case, CPU, gradients)
    prepared = load_kernel("dense", kernel).prepare(case, mask, tensors)
    verdict = Verifier(case, mask, tensors).check(prepared, gradients)
    assert verdict.wrong is None
    return prepared


@pytest.mark.parametrize("kernel", ["naive", "sdpa", "segments"])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_every_pattern(kernel, pattern):
    check(kernel, draw(pattern, 137, [60, 1, 7, 69]), (4, 2))


@pytest.mark.parametrize("kernel", ["naive", "sdpa", "segments"])
@pytest.mark.parametrize(("seqlen", "heads"), [(1, (4, 2)), (192, (28, 7)), (1025, (3, 1)), (70, (2, 2))])
def test_lengths_and_groups(kernel, seqlen, heads):
    check(kernel, draw("causal", seqlen), heads)
    check(kernel, draw("full_sliding_window", seqlen), heads)


@pytest.mark.parametrize("kernel", ["naive", "sdpa", "segments"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision(kernel, dtype):
    check(kernel, draw("causal", 300), (4, 2), dtype=dtype)


@pytest.mark.parametrize("kernel", ["naive", "sdpa", "segments"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_rows_of_few_cells_pass_the_gate_at_every_precision(kernel, dtype):
    lengths = random.Random(5)
    documents = [lengths.randint(1, 8) for _ in range(100)]
    check(kernel, draw("causal_document", sum(documents), documents), (8, 2), 128, dtype)


@pytest.mark.parametrize("pattern", ["full", "causal", "causal_document", "global_sliding"])
def test_flex_forward(pattern):
    check("flex", draw(pattern, 192, [100, 1, 91]), (4, 2), gradients=False)


def test_flex_gives_the_declared_reason_against_a_backward_on_a_cpu():
    case = Case("dense", "flex", "auto", "causal", 128, 0, 2, 2, 64, "float32", "backward")
    prepared = load_kernel("dense", "flex").prepare(case, draw("causal", 128), draw_tensors(case, CPU, True))
    with pytest.raises(torch._dynamo.exc.Unsupported, match=NO_BACKWARD_ON_CPU):
        prepared.forward()
    assert load_kernel("dense", "flex").support.reason_against(case, "cpu") == NO_BACKWARD_ON_CPU


def test_flex_that_would_run_uncompiled_raises(monkeypatch):
    torch._dynamo.reset()
    check("flex", draw("causal", 128), (2, 2), gradients=False)
    monkeypatch.setattr(torch._dynamo.config, "recompile_limit", 1)
    case = Case("dense", "flex", "auto", "causal", 256, 0, 2, 2, 64, "float32", "forward")
    tensors = draw_tensors(case, CPU, False)
    prepared = load_kernel("dense", "flex").prepare(case, draw("causal", 256), tensors)
    torch._dynamo.config.recompile_limit = 1
    with pytest.raises(torch._dynamo.exc.FailOnRecompileLimitHit):
        prepared.forward()


def test_sdpa_says_which_backend_and_form_ran():
    forms = {"full": "no mask", "causal": "is_causal", "causal_document": "dense mask"}
    for pattern, form in forms.items():
        assert check("sdpa", draw(pattern, 64, [60, 4]), (4, 2)).backend == f"flash for CPU, {form}"


def test_sdpa_on_the_math_path_is_a_fallback():
    case = Case("dense", "sdpa", "auto", "causal", 64, 0, 4, 2, 64, "float32", "forward")
    with sdpa_kernel(SDPBackend.MATH), pytest.raises(FallbackError, match="math path"):
        load_kernel("dense", "sdpa").prepare(case, draw("causal", 64), draw_tensors(case, CPU, True))


@pytest.mark.parametrize("layout", ["hsd", "shd", "bhsd", "bshd"])
def test_layouts_are_there_and_back(layout):
    tensor = torch.randn(3, 5, 7)
    moved = to_layout(tensor, layout)
    sizes = {"b": 1, "h": 3, "s": 5, "d": 7}
    assert moved.shape == tuple(sizes[letter] for letter in layout)
    assert torch.equal(from_layout(moved, layout), tensor)
