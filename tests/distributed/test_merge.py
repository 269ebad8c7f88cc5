"""Partial attention merged in any number of parts is attention; no processes."""

import json
import math
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from longca.parallel.merge import MergedAttention, SummedGradient, merge


def softmax_parts(scores, values, cuts):
    """(out, lse) over each part of the keys, float64; nothing kept gives 0 and -inf."""
    for begin, end in pairwise(cuts):
        part = scores[..., begin:end]
        lse = part.logsumexp(-1) if end > begin else part.new_full(part.shape[:-1], -math.inf)
        shift = torch.where(lse == -math.inf, 0.0, lse)
        yield (part - shift[..., None]).exp() @ values[:, begin:end], lse


@settings(max_examples=150, deadline=None)
@given(
    st.integers(1, 20).flatmap(
        lambda keys: st.tuples(st.just(keys), st.lists(st.integers(0, keys), max_size=6).map(sorted))
    ),
    st.sampled_from([1.0, 1e3, 5e4]),
    st.floats(0, 1),
    st.integers(0, 1 << 30),
)
def test_merged_parts_are_the_whole(keys_and_cuts, size, dropped, seed):
    keys, cuts = keys_and_cuts
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(2, 5, keys, generator=generator, dtype=torch.float64) * size
    scores[torch.rand(scores.shape, generator=generator) < dropped] = -math.inf
    values = torch.randn(2, keys, 4, generator=generator, dtype=torch.float64)
    merged = MergedAttention(len(cuts) + 1)
    for part in softmax_parts(scores, values, [0, *cuts, keys]):
        merged.add(*part)
    out, lse = merged.result(torch.empty(2, 5, 4, dtype=torch.float64))
    want_out, want_lse = next(softmax_parts(scores, values, [0, keys]))
    torch.testing.assert_close(out, want_out, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(lse, want_lse, rtol=1e-12, atol=1e-9)


def test_two_empty_partials_stay_empty():
    out, lse = torch.zeros(1, 2, 3), torch.full((1, 2), -math.inf)
    merge(out, lse, torch.zeros(1, 2, 3), torch.full((1, 2), -math.inf))
    assert (out == 0).all()
    assert (lse == -math.inf).all()


def test_an_empty_partial_changes_nothing():
    generator = torch.Generator().manual_seed(0)
    out, lse = torch.randn(1, 2, 3, generator=generator), torch.tensor([[700.0, -700.0]])
    want = out.clone(), lse.clone()
    merge(out, lse, torch.zeros(1, 2, 3), torch.full((1, 2), -math.inf))
    assert torch.equal(out, want[0])
    assert torch.equal(lse, want[1])
    empty, nothing = torch.zeros(1, 2, 3), torch.full((1, 2), -math.inf)
    merge(empty, nothing, *want)
    assert torch.equal(empty, want[0])
    assert torch.equal(nothing, want[1])


def test_merges_in_place():
    out, lse = torch.zeros(1, 2, 3), torch.zeros(1, 2)
    places = out.data_ptr(), lse.data_ptr()
    merge(out, lse, torch.ones(1, 2, 3), torch.zeros(1, 2))
    assert (out.data_ptr(), lse.data_ptr()) == places
    assert torch.equal(out, torch.full((1, 2, 3), 0.5))
    assert lse[0, 0].item() == pytest.approx(math.log(2))


def test_many_bfloat16_parts_are_rounded_once():
    parts = 64
    third = torch.full((1, 1, 4), 1 / 3).bfloat16()
    merged, summed = MergedAttention(parts), SummedGradient(parts)
    for _ in range(parts):
        merged.add(third.clone(), torch.zeros(1, 1))
        summed.add(third.clone())
    out, lse = merged.result(third)
    assert out.dtype == torch.bfloat16
    assert torch.equal(out, third)
    assert lse.item() == pytest.approx(math.log(parts), rel=1e-6)
    assert torch.equal(summed.result(third), (third.double() * parts).bfloat16())


def test_two_bfloat16_parts_are_rounded_once():
    generator = torch.Generator().manual_seed(1)
    parts = [torch.randn(2, 5, 8, generator=generator).bfloat16() for _ in range(2)]
    lses = [torch.randn(2, 5, generator=generator) for _ in range(2)]
    merged, summed = MergedAttention(2), SummedGradient(2)
    for part, lse in zip(parts, lses, strict=True):
        merged.add(part.clone(), lse.clone())
        summed.add(part.clone())
    weights = torch.stack(lses).double().softmax(0)[..., None]
    want = sum(weight * part.double() for weight, part in zip(weights, parts, strict=True))
    out, lse = merged.result(parts[0])
    assert out.dtype == torch.bfloat16
    torch.testing.assert_close(out.double(), want, rtol=2**-8, atol=1e-6)
    torch.testing.assert_close(lse, torch.stack(lses).logsumexp(0))
    assert torch.equal(summed.result(parts[0]), (parts[0].double() + parts[1].double()).bfloat16())


def test_no_partial_gives_nothing_and_one_is_handed_on():
    q = torch.ones(2, 3, 4).bfloat16()
    out, lse = MergedAttention(0).result(q)
    assert (out == 0).all() and out.dtype == torch.bfloat16
    assert (lse == -math.inf).all() and lse.dtype == torch.float32
    merged = MergedAttention(1)
    merged.add(q, torch.zeros(2, 3))
    assert merged.result(q)[0] is q


def test_the_fused_kernel_merges_as_the_torch_form():
    pytest.importorskip("triton")
    run = subprocess.run(
        [sys.executable, "merge_interpreted.py"],
        cwd=Path(__file__).parent,
        env={**os.environ, "TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    answers = json.loads(run.stdout)
    assert len(answers) == 3
    for answer in answers:
        assert answer["out"] < 1e-6
        assert answer["lse"] < 2e-5
        assert answer["same_empty"]
        assert answer["elsewhere"] < 8
    assert answers[0]["empty"] >= 80


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_a_gpu_merges_as_a_cpu_every_time(dtype):
    generator = torch.Generator().manual_seed(3)
    out, part = torch.randn(2, 3, 1000, 128, generator=generator)
    lse, part_lse = torch.randn(2, 3, 1000, generator=generator) * 20
    lse[:, :100], part_lse[:, 50:200] = -math.inf, -math.inf
    out[:, :100], part[:, 50:200] = 0.0, 0.0
    want, want_lse = out.clone(), lse.clone()
    merge(want, want_lse, part.to(dtype), part_lse)
    for _ in range(50):  # in place: what warps read and write at the same time shows now and then
        on_gpu = [x.cuda() for x in (out, lse, part.to(dtype), part_lse)]
        merge(*on_gpu)
        torch.testing.assert_close(on_gpu[0].cpu(), want, rtol=0, atol=1e-5)
        torch.testing.assert_close(on_gpu[1].cpu(), want_lse, rtol=0, atol=1e-4)
