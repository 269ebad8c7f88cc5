"""Restricted masks that are one rectangle, and a library without masks as a local kernel over them."""

import pytest
import torch
from parallel_cases import DOCUMENTS, SEQLEN

from longca.kernels.interface import UnsupportedError
from longca.masks.mask import draw_mask
from longca.masks.slices import Slice
from longca.masks.views.dense import dense
from longca.ops import segments
from longca.parallel.rectangle import Rectangle, find_rectangle
from longca.parallel.rectangle_kernel import RectangleKernel
from longca.parallel.sharding import shard_sequence
from longca.parallel.work import local_slices


def parts(pattern, sharding, ring, seqlen=SEQLEN):
    """Every rank's part of a mask for every owner of keys, with its queries and keys; None where it keeps nothing."""
    mask = draw_mask(pattern, seqlen)
    shards = shard_sequence(sharding, ring, seqlen, mask.slices).shards
    for queries in shards:
        for keys in shards:
            yield local_slices(mask.slices, queries, keys), queries.rows, keys.rows


@pytest.mark.parametrize("ring", [1, 2, 3, 4])
@pytest.mark.parametrize("pattern", ["full", "causal"])
@pytest.mark.parametrize("sharding", ["contiguous", "zigzag"])
def test_every_part_of_a_ring_is_a_rectangle_that_keeps_its_cells(pattern, sharding, ring):
    for slices, queries, keys in parts(pattern, sharding, ring):
        if not slices:
            continue
        q0, q1, k0, k1, causal = find_rectangle(slices, queries, keys)
        one = Slice(q0, q1, k0, k1, "causal" if causal else "full")
        assert (dense([one], queries, keys) == dense(slices, queries, keys)).all()


def test_the_shape_of_a_zigzag_ring():
    found = [find_rectangle(s, q, k) for s, q, k in parts("causal", "zigzag", 2, 128) if s]
    assert found == [
        Rectangle(0, 64, 0, 64, True),
        Rectangle(32, 64, 0, 64, False),
        Rectangle(0, 64, 0, 32, False),
        Rectangle(0, 64, 0, 64, True),
    ]


@pytest.mark.parametrize(
    "slices",
    [
        [Slice(0, 4, 0, 4, "inv_causal")],
        [Slice(0, 2, 0, 2, "full"), Slice(2, 4, 2, 4, "full")],
        [Slice(0, 2, 0, 4, "full"), Slice(3, 4, 0, 4, "full")],
        [Slice(0, 4, 0, 1, "full"), Slice(0, 4, 2, 4, "full")],
        [Slice(0, 2, 0, 4, "bi_causal")],
    ],
)
def test_what_is_no_rectangle_is_unsupported(slices):
    with pytest.raises(UnsupportedError, match="no full or causal rectangle"):
        find_rectangle(slices, 4, 4)


class Plain:
    """A library in plain torch, float64 inside: what a vendor's kernel does on one rectangle."""

    def _scores(self, q, k, causal):
        group = q.shape[0] // k.shape[0]
        scores = q.double() @ k.double().repeat_interleave(group, 0).mT * q.shape[-1] ** -0.5
        if causal:
            rows, columns = scores.shape[1:]
            kept = torch.ones(rows, columns, dtype=torch.bool).tril(columns - rows)
            scores = scores.masked_fill(~kept, -torch.inf)
        return scores, group

    def forward(self, q, k, v, out, causal):
        scores, group = self._scores(q, k, causal)
        out.copy_(scores.softmax(-1) @ v.double().repeat_interleave(group, 0))
        return scores.logsumexp(-1).float()

    def backward(self, q, k, v, out, lse, dout, gradients, causal):
        scores, group = self._scores(q, k, causal)
        p = (scores - lse.double()[..., None]).exp()
        delta = (out.double() * dout.double()).sum(-1, keepdim=True)
        dp = dout.double() @ v.double().repeat_interleave(group, 0).mT
        ds = p * (dp - delta) * q.shape[-1] ** -0.5
        gradients[0].copy_(ds @ k.double().repeat_interleave(group, 0))
        gradients[1].copy_((ds.mT @ q.double()).unflatten(0, (-1, group)).sum(1))
        gradients[2].copy_((p.mT @ dout.double()).unflatten(0, (-1, group)).sum(1))


@pytest.mark.parametrize("pattern", ["full", "causal"])
def test_a_library_on_rectangles_is_the_same_local_kernel_as_ours(pattern):
    generator = torch.Generator().manual_seed(0)
    kernel = RectangleKernel(Plain())
    shape = (4, 2, 16, torch.float32, torch.device("cpu"))
    for slices, queries, keys in parts(pattern, "zigzag", 3):
        if not slices:
            continue
        q, dout = (torch.randn(4, queries, 16, generator=generator) for _ in range(2))
        k, v = (torch.randn(2, keys, 16, generator=generator) for _ in range(2))
        ours, theirs = (one.plan(slices, queries, keys, *shape) for one in (segments, kernel))
        want, got = segments.forward(q, k, v, ours), kernel.forward(q, k, v, theirs)
        for right, found in zip(want, got, strict=True):
            torch.testing.assert_close(found, right, rtol=1e-5, atol=1e-5)
        # Merged over other keys, out and lse are of the whole softmax: a larger lse, another out.
        out, lse = want[0] * 0.7, torch.where(want[1].isinf(), 0.0, want[1] + 0.5)
        right = segments.backward(q, k, v, out, lse, dout, ours)
        for a, b in zip(kernel.backward(q, k, v, out, lse, dout, theirs), right, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)


def test_documents_are_no_rectangle():
    mask = draw_mask("causal_document", SEQLEN, documents=DOCUMENTS)
    with pytest.raises(UnsupportedError):
        find_rectangle(mask.slices, SEQLEN, SEQLEN)
