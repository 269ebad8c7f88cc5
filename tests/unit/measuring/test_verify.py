"""The gate in front of every number: right kernels pass it at every precision, small mistakes do not."""

from dataclasses import replace

import pytest
import torch

from longca.cases import Case
from longca.kernels.dense.naive import prepare
from longca.kernels.interface import Prepared
from longca.masks.mask import draw_mask
from longca.masks.slices import Slice
from longca.measure.tensors import draw_tensors
from longca.measure.verify import Verifier

CASE = Case("dense", "naive", "auto", "causal", 300, 0, 4, 2, 64, "float32", "backward")
DTYPES = ("float32", "float16", "bfloat16")


def verdict(case, mask=None, spoil=None, ran_mask=None):
    """Verify a right kernel on `case`, its results spoilt, or run on another mask than the oracle's."""
    mask = mask or draw_mask(case.pattern, case.seqlen)
    tensors = draw_tensors(case, torch.device("cpu"), gradients=True)
    ran = prepare(case, ran_mask or mask, tensors)

    def spoilt(name, tensor):
        tensor = tensor.detach().clone()
        if spoil and name == spoil[0]:
            spoil[1](tensor)
        return tensor

    what = Prepared(
        lambda: spoilt("out", ran.forward()),
        lambda: tuple(
            spoilt(name, one) for name, one in zip(("dq", "dk", "dv"), ran.backward(), strict=True)
        ),
        ran.release,
        ran.layout,
        ran.backend,
    )
    return Verifier(case, mask, tensors).check(what, gradients=True)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("seqlen", [1, 2, 137, 1025])
def test_a_right_kernel_passes(dtype, seqlen):
    found = verdict(replace(CASE, dtype=dtype, seqlen=seqlen))
    assert found.wrong is None
    assert set(found.relative_error) == {"out", "dq", "dk", "dv"}
    assert all(0 <= error < (2e-5 if dtype == "float32" else 2e-2) for error in found.relative_error.values())


def scale(factor):
    return lambda tensor: tensor.mul_(factor)


def one_row(row):
    return lambda tensor: tensor[:, row].mul_(0.5)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["out", "dq", "dk", "dv"])
@pytest.mark.parametrize("spoil", [scale(1.03), one_row(-1), one_row(40), lambda tensor: tensor[-1].zero_()])
def test_a_wrong_tensor_does_not(dtype, name, spoil):
    found = verdict(replace(CASE, dtype=dtype), spoil=(name, spoil))
    assert found.wrong is not None and found.wrong.startswith(f"{name} errs by")


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_result_that_is_not_finite_has_no_error(value):
    found = verdict(CASE, spoil=("dv", lambda tensor: tensor[-1, 0].fill_(value)))
    assert found.wrong == "dv is not finite" and found.relative_error["dv"] is None


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("pattern", "wrong"),
    [
        ("causal", lambda n: (Slice(0, n, 0, n, "full"),)),
        ("causal", lambda n: (Slice(0, n - 1, 0, n - 1, "causal"), Slice(n - 1, n, 0, n - 1, "full"))),
        ("full", lambda n: (Slice(0, n, 0, n - 1, "full"),)),
        ("full", lambda n: (Slice(0, n, 0, n, "causal"),)),
    ],
)
def test_another_mask_than_the_case_does_not_pass(dtype, pattern, wrong):
    mask = draw_mask(pattern, 300)
    found = verdict(
        replace(CASE, dtype=dtype, pattern=pattern), mask, ran_mask=replace(mask, slices=wrong(300))
    )
    assert found.wrong is not None


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("pattern", ["full_sliding_window", "causal_sliding_window"])
@pytest.mark.parametrize("window", [99, 101])
def test_a_window_one_off_does_not_pass(dtype, pattern, window):
    masks = [draw_mask(pattern, 512, parameters={"window": size}) for size in (100, window)]
    found = verdict(replace(CASE, dtype=dtype, pattern=pattern, seqlen=512), masks[0], ran_mask=masks[1])
    assert found.wrong is not None


def test_a_group_that_reads_its_neighbours_keys_does_not_pass():
    case = replace(CASE, q_heads=28, kv_heads=7, seqlen=100)
    mask = draw_mask("causal", 100)
    tensors = draw_tensors(case, torch.device("cpu"), gradients=True)
    shifted = replace(tensors, k=tensors.k.roll(1, 0), v=tensors.v.roll(1, 0))
    assert Verifier(case, mask, tensors).check(prepare(case, mask, tensors), True).wrong is None
    assert "out errs" in Verifier(case, mask, tensors).check(prepare(case, mask, shifted), True).wrong
