"""The gate in front of every number: right kernels pass it at every precision, small mistakes do not."""

from dataclasses import replace

import pytest
import torch

from longca.cases import Case
from longca.kernels.dense.naive import prepare
from longca.kernels.interface import Prepared
from longca.kernels.oracle import attend
from longca.masks.mask import draw_mask
from longca.masks.slices import Slice
from longca.measure import truth
from longca.measure.tensor_file import write_tensors
from longca.measure.tensors import draw_tensors
from longca.measure.verify import Verifier

CASE = Case("dense", "naive", "auto", "causal", 300, 0, 4, 2, 64, "float32", "backward")
DTYPES = ("float32", "float16", "bfloat16")


def writes_within(seconds, monkeypatch):
    """As if computing had taken so long."""
    monkeypatch.setattr(
        truth, "write_tensors", lambda file, tensors, within_s: write_tensors(file, tensors, seconds)
    )


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


def test_kernels_of_a_run_share_what_the_oracle_took_long_for(tmp_path, monkeypatch):
    mask, other = draw_mask("causal", 300), draw_mask("full", 300)
    asked = []

    def counted(*data, **options):
        asked.append(1)
        return attend(*data, **options)

    monkeypatch.setattr(truth, "attend", counted)
    writes_within(3600.0, monkeypatch)

    def check(case, mask, oracles):
        tensors = draw_tensors(case, torch.device("cpu"), gradients=True)
        found = Verifier(case, mask, tensors, oracles).check(prepare(case, mask, tensors), gradients=True)
        return found, len(asked)

    alone, calls = check(CASE, mask, None)
    assert (alone.wrong, calls) == (None, 1)
    # Computed, then read, to the last bit.
    assert check(CASE, mask, tmp_path) == (alone, 2) and check(CASE, mask, tmp_path) == (alone, 2)
    # Another mask, precision or shape is another truth, and a kernel that is wrong beside a kept one is wrong.
    for case, drawn in (
        (CASE, other),
        (replace(CASE, dtype="bfloat16"), mask),
        (replace(CASE, q_heads=2), mask),
    ):
        found, calls = check(case, drawn, tmp_path)
        assert found.wrong is None
    assert calls == 5
    assert len(list(tmp_path.iterdir())) == 4
    tensors = draw_tensors(CASE, torch.device("cpu"), gradients=True)
    mistaken = Verifier(CASE, mask, tensors, tmp_path).check(prepare(CASE, other, tensors), gradients=True)
    assert "out errs" in mistaken.wrong and len(asked) == 5


def test_what_is_computed_sooner_than_written_is_not_kept(tmp_path, monkeypatch):
    writes_within(0.0, monkeypatch)
    tensors = draw_tensors(CASE, torch.device("cpu"), gradients=True)
    mask = draw_mask("causal", 300)
    Verifier(CASE, mask, tensors, tmp_path).check(prepare(CASE, mask, tensors), gradients=True)
    assert list(tmp_path.iterdir()) == []
