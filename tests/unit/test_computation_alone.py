"""A mechanism's calls by themselves: as much memory moves as in a pass, or they would be faster than they are."""

from types import SimpleNamespace

import pytest
import torch

from longca.measure.world.alone import Computation
from longca.parallel.local import LocalCall


class Seen:
    """A local kernel that notes the tensors of each call."""

    def __init__(self):
        self.calls = []

    def forward(self, q, k, v, plan):
        self.calls.append((q, k, v))
        return torch.empty_like(q), torch.empty(q.shape[:2])

    def backward(self, q, k, v, out, lse, dout, plan):
        self.calls.append((q, k, v, out, lse, dout))
        return q, k, v


@pytest.fixture
def seen():
    return Seen()


def alone(seen, queries, chunks):
    setting = SimpleNamespace(kernel=seen, head_dim=8, dtype=torch.bfloat16, device="cpu")
    return Computation(setting, [LocalCall(rows, 32, 4, 2, None) for rows in queries], chunks)


@pytest.fixture
def computation(seen):
    return alone(seen, (32, 32, 16), chunks=1)


def _memory(tensors):
    return [tensor.data_ptr() for tensor in tensors]


@pytest.mark.parametrize("pass_", ["forward", "backward"])
def test_no_two_tensors_of_a_call_share_memory(computation, seen, pass_):
    getattr(computation, pass_)()
    for call in seen.calls:
        assert len(set(_memory(call))) == len(call)


def test_each_call_has_keys_of_its_own_and_queries_of_a_shape_stay(computation, seen):
    computation.forward()
    first, second, narrow = seen.calls
    assert first[0] is second[0]
    assert narrow[0].shape == (4, 16, 8)
    assert len(set(_memory([*first[1:], *second[1:], *narrow[1:]]))) == 6


def test_each_chunk_of_heads_has_queries_of_its_own(seen):
    alone(seen, (32, 32, 32, 32), chunks=2).backward()
    q, dout = ([call[place] for call in seen.calls if len(call) == 6] for place in (0, 5))
    for of_chunks in (q, dout):
        assert of_chunks[0] is of_chunks[1] and of_chunks[2] is of_chunks[3]
        assert of_chunks[0] is not of_chunks[2]


def test_a_backward_is_of_a_forward_made_once(computation, seen):
    computation.backward()
    made = [call for call in seen.calls if len(call) == 3]
    computation.backward()
    assert [call for call in seen.calls if len(call) == 3] == made
    assert len(seen.calls) == 3 + 2 * 3
