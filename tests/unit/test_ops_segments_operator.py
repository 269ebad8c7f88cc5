"""segments as a torch operator: compiled, differentiated, copied, under autocast; and what its calls refuse."""

import copy
import dataclasses
import gc
import pickle
import weakref

import numpy as np
import pytest
import torch

from longca.ops import segments

TOKENS = 50


def make(slices, tokens=TOKENS, dtype=torch.float32):
    return segments.plan(slices, tokens, tokens, 4, 2, 16, dtype, "cpu")


def full(keys, tokens=TOKENS):
    """A mask whose rows keep the first `keys`."""
    return make([(0, tokens, 0, keys, "full")], tokens)


def tensors(tokens=TOKENS, dtype=torch.float32):
    torch.manual_seed(tokens)
    return [torch.randn(heads, tokens, 16, requires_grad=True, dtype=dtype) for heads in (4, 2, 2)]


def gradients(call, inputs, plan):
    return torch.autograd.grad(call(*inputs, plan), inputs)


def loss(q, k, v, plan):
    out, lse = segments.attention(2 * q, k, v, plan)
    assert not lse.requires_grad
    return out.sin().sum() + lse.sum()


def test_torch_takes_the_operator():
    plan = make([(0, TOKENS, 0, TOKENS, "causal")])
    q, k, v = tensors()
    torch.library.opcheck(torch.ops.longca.segments_forward, (q, k, v, plan.handle))
    out, lse = (x.detach() for x in segments.forward(q, k, v, plan))
    q, k, v = (x.detach() for x in (q, k, v))
    torch.library.opcheck(torch.ops.longca.segments_backward, (q, k, v, out, lse, out.clone(), plan.handle))


@pytest.mark.parametrize("dynamic", [None, False, True])
def test_a_compiled_call_takes_a_plan_a_batch(dynamic):
    torch._dynamo.reset()
    counter = torch._dynamo.testing.CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(loss, fullgraph=True, backend=counter, dynamic=dynamic)
    for keys in range(10, 50, 4):
        plan, inputs = full(keys), tensors()
        for a, b in zip(*(gradients(f, inputs, plan) for f in (loss, compiled)), strict=True):
            torch.testing.assert_close(a, b)
    assert counter.frame_count == 1


def test_a_compiled_call_takes_other_lengths():
    torch._dynamo.reset()
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    for tokens in (50, 60, 71, 83):
        plan, inputs = full(tokens - 7, tokens), tensors(tokens)
        for a, b in zip(*(gradients(f, inputs, plan) for f in (loss, compiled)), strict=True):
            torch.testing.assert_close(a, b)


@pytest.mark.parametrize("compiled", [False, True])
def test_gradients_outlive_the_callers_plan_and_nothing_else_keeps_it(compiled):
    torch._dynamo.reset()
    call = torch.compile(loss, backend="aot_eager") if compiled else loss
    inputs, plan = tensors(), full(20)
    want = gradients(loss, inputs, plan)
    prepared = weakref.ref(plan.prepared)
    result = call(*inputs, plan)
    del plan
    gc.collect()
    for a, b in zip(torch.autograd.grad(result, inputs), want, strict=True):
        torch.testing.assert_close(a, b)
    del result
    gc.collect()
    assert prepared() is None


@pytest.mark.parametrize(
    "make_copy",
    [
        copy.copy,
        copy.deepcopy,
        lambda plan: pickle.loads(pickle.dumps(plan)),  # noqa: S301
        lambda plan: dataclasses.replace(plan, prepared=plan.prepared),
    ],
    ids=["copy", "deepcopy", "pickle", "replace"],
)
def test_a_copy_is_a_plan_of_its_own(make_copy):
    q, k, v = (x.detach() for x in tensors())
    plan, other = full(20), full(30)
    copied = make_copy(plan)
    assert int(copied.handle) not in (int(plan.handle), int(other.handle))
    want, others = segments.forward(q, k, v, plan)[0], segments.forward(q, k, v, other)[0]
    del plan
    gc.collect()
    assert torch.equal(segments.attention(q, k, v, copied)[0], want)
    assert torch.equal(segments.attention(q, k, v, other)[0], others)


def test_a_copied_handle_says_when_its_plan_is_gone():
    plan = full(20)
    handle = plan.handle.clone()
    del plan
    gc.collect()
    q, k, v = (x.detach() for x in tensors())
    with pytest.raises(RuntimeError, match="plan of this call is gone"):
        torch.ops.longca.segments_forward(q, k, v, handle)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_autocast_changes_nothing(dtype):
    inputs, plan = tensors(dtype=dtype), make([(0, TOKENS, 0, TOKENS, "causal")], dtype=dtype)
    want = segments.attention(*inputs, plan)[0]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = segments.attention(*inputs, plan)[0]
        assert out.dtype == dtype and torch.equal(out, want)
        found = torch.autograd.grad(out.float().sum(), inputs)
    assert all(
        torch.equal(a, b) for a, b in zip(found, torch.autograd.grad(want.float().sum(), inputs), strict=True)
    )


def test_the_functional_pair_records_nothing():
    inputs, plan = tensors(), full(20)
    out, lse = segments.forward(*inputs, plan)
    found = segments.backward(*inputs, out, lse, torch.ones_like(out), plan)
    assert not any(x.requires_grad for x in (out, lse, *found))


@pytest.mark.parametrize("lse", [lambda x: x.double(), lambda x: x.int(), lambda x: x[:, :9], lambda x: x.mT])
def test_a_backward_takes_the_lse_of_a_forward(lse):
    inputs, plan = [x.detach() for x in tensors()], full(20)
    out, right = segments.forward(*inputs, plan)
    with pytest.raises(ValueError, match="lse is"):
        segments.backward(*inputs, out, lse(right), out, plan)


@pytest.mark.parametrize("backend", ["torch", "triton", "gluon"])
@pytest.mark.parametrize(
    ("slices", "told"),
    [
        ([(0, 8, 0, 8, "full"), (0, 8, 0, 8, "casual")], "'casual'"),
        ([(0, 8, 0, 8)], r"\(0, 8, 0, 8\) is no piece"),
        ([(0, 8.0, 0, 8, "full")], "four whole numbers"),
        ([(0, 8, 0, 16, "full")], r"\(0, 8, 0, 16\) must be ranges inside 8 queries x 8 keys"),
        ([(0, 16, 0, 8, "causal")], "must be ranges"),
        ([(0, 8, -4, 4, "full")], "must be ranges"),
        ([(6, 2, 0, 8, "full")], "must be ranges"),
        ([[(0, 8, 0, 8, "full")], [(0, 100, 0, 8, "full")]], "must be ranges"),
        ([(0, 2**70, 0, 8, "full")], "is no piece of a mask"),
        (np.array([[0, 8, 0, 9]]), "must be ranges"),
        (torch.tensor([[0, 8, 0, 8], [0, 8, 5, 2]]), r"\(0, 8, 5, 2\) must be ranges"),
        (np.array([[0.0, 8, 0, 8]]), "float64"),
        (torch.zeros(1, 2, 4, dtype=torch.int64), r"\[1, 2, 4\]; right: int64 \[n, 4\]"),
    ],
)
def test_pieces_that_are_none_are_refused(slices, told, backend):
    with pytest.raises(ValueError, match=told):
        segments.plan(slices, 8, 8, 2, 2, 64, torch.float16, "cpu", backend)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"scale": 0}, "scale 0"),
        ({"kv_heads": 0}, "kv_heads 0"),
        ({"head_dim": 0}, "head_dim 0"),
        ({"keys": -1}, "keys -1"),
        ({"backend": "triton", "head_dim": 96}, "head_dim 16, 32, 64, 128"),
        ({"backend": "triton", "dtype": torch.float64}, "float64"),
        ({"backend": "gluon", "dtype": torch.float32}, "float32"),
        ({"backend": "cuda"}, "'cuda' is not one of"),
    ],
)
def test_what_no_plan_serves_is_refused(options, told):
    sizes = {"queries": 8, "keys": 8, "q_heads": 2, "kv_heads": 2, "head_dim": 64, "dtype": torch.float16}
    with pytest.raises(ValueError, match=told):
        segments.plan([], device="cpu", **{**sizes, **options})


def test_sizes_may_be_numpys_and_a_cpu_may_have_a_number():
    plan = segments.plan([(0, 8, 0, 8, "full")], *np.array([8, 8, 2, 2, 16]), torch.float32, "cpu:0")
    x = torch.randn(2, 8, 16)
    assert segments.forward(x, x, x, plan)[0].isfinite().all()
    assert all(type(size) is int for size in dataclasses.astuple(plan.shape)[:-1])


def test_the_default_device_of_torch_is_not_asked():
    with torch.device("meta"):
        plan = segments.plan([(0, 999, 0, 999, "causal")], 999, 999, 4, 2, 64, torch.float16, "cpu", "gluon")
    assert plan.prepared.forward.buffer.device.type == plan.device.type == "cpu"


@pytest.mark.parametrize("backend", ["torch", "triton", "gluon"])
@pytest.mark.parametrize(("queries", "keys"), [(64, 0), (0, 64), (0, 0), (64, 64)])
def test_where_nothing_is_kept_nothing_is_launched(backend, queries, keys):
    plan = segments.plan([], queries, keys, 4, 2, 64, torch.float16, "cpu", backend)
    q, k = torch.ones(4, queries, 64).half(), torch.ones(2, keys, 64).half()
    out, lse = segments.forward(q, k, k, plan)
    assert out.shape == q.shape and lse.shape == (4, queries)
    assert (out == 0).all() and (lse == -torch.inf).all()


def test_sizes_are_whole():
    with pytest.raises(TypeError, match="float"):
        segments.plan([], 8.7, 8, 2, 2, 16, torch.float32, "cpu")


@pytest.mark.parametrize("none", [[], [[], []], np.array([]), torch.empty(0, 4), np.empty((0, 4), np.int64)])
def test_a_mask_without_pieces_keeps_nothing(none):
    plan = segments.plan(none, 8, 8, 2, 2, 16, torch.float32, "cpu")
    x = torch.randn(2, 8, 16)
    assert (segments.forward(x, x, x, plan)[0] == 0).all()


def test_a_plan_made_to_infer_trains():
    with torch.inference_mode():
        plan = full(20)
    inputs = tensors()
    for a, b in zip(gradients(loss, inputs, plan), gradients(loss, inputs, full(20)), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("pack", [torch.clone, lambda x: x.numpy().copy()])
def test_what_is_saved_for_a_backward_may_be_copied(pack):
    inputs = tensors()
    unpack = (lambda x: x) if pack is torch.clone else torch.from_numpy
    with torch.autograd.graph.saved_tensors_hooks(lambda x: pack(x.detach()), unpack):
        out, _ = segments.attention(*inputs, full(20))
    gc.collect()
    found = torch.autograd.grad(out.sum(), inputs)
    want = torch.autograd.grad(segments.attention(*inputs, full(20))[0].sum(), inputs)
    assert all(torch.equal(a, b) for a, b in zip(found, want, strict=True))


@pytest.mark.parametrize("name", ["segments_forward", "segments_backward"])
def test_no_cuda_graph_captures_a_plan(name):
    assert torch.Tag.cudagraph_unsafe in getattr(torch.ops.longca, name).default.tags
