"""FlashAttention's generations as local kernels: what is asked of their functional forms, and what comes back."""

import sys
from types import ModuleType

import pytest
import torch
from test_rectangle import Plain

from longca.kernels.interface import UnsupportedError
from longca.masks.slices import Slice
from longca.ops import segments
from longca.parallel.cudnn_attention import CudnnAttention
from longca.parallel.flash_attention import generation_2, generation_3, generation_4
from longca.parallel.rectangle_kernel import RectangleKernel


def heads_first(x):
    return x[0].transpose(0, 1)


def forward(q, k, v, scale, causal):
    """As the libraries: a new out [1, rows, heads, D], contiguous, and lse [1, heads, rows]."""
    assert scale == q.shape[-1] ** -0.5
    out = torch.empty_like(heads_first(q)).contiguous()
    lse = Plain().forward(*map(heads_first, (q, k, v)), out, causal)
    return out.transpose(0, 1)[None].contiguous(), lse[None], None, None


def backward(dout, q, k, v, out, softmax_lse, dq, dk, dv, causal):
    assert softmax_lse.is_contiguous()
    tensors = map(heads_first, (q, k, v, out))
    gradients = tuple(map(heads_first, (dq, dk, dv)))
    Plain().backward(*tensors, softmax_lse[0], heads_first(dout), gradients, causal)


def library_2():
    """The signatures of flash-attn 2.8.3."""
    module = ModuleType("flash_attn.flash_attn_interface")

    def _flash_attn_forward(
        q, k, v, dropout_p, softmax_scale, causal, window_size_left, window_size_right, softcap, alibi_slopes,
        return_softmax,
    ):  # fmt: skip
        assert (dropout_p, window_size_left, window_size_right, softcap) == (0.0, -1, -1, 0.0)
        assert alibi_slopes is None and not return_softmax
        return forward(q, k, v, softmax_scale, causal)

    def _flash_attn_backward(
        dout, q, k, v, out, softmax_lse, dq, dk, dv, dropout_p, softmax_scale, causal, window_size_left,
        window_size_right, softcap, alibi_slopes, deterministic, rng_state=None,
    ):  # fmt: skip
        backward(dout, q, k, v, out, softmax_lse, dq, dk, dv, causal)

    module._flash_attn_forward, module._flash_attn_backward = _flash_attn_forward, _flash_attn_backward
    package = ModuleType("flash_attn")
    package.flash_attn_interface = module
    return {"flash_attn": package, "flash_attn.flash_attn_interface": module}


def library_3():
    """What is used of the signatures of flash-attn 3."""
    module = ModuleType("flash_attn_interface")

    def _flash_attn_forward(
        q, k, v, k_new=None, v_new=None, qv=None, out_=None, softmax_scale=None, causal=False
    ):
        assert out_ is None
        return forward(q, k, v, softmax_scale, causal)

    def _flash_attn_backward(
        dout, q, k, v, out, softmax_lse, cu_seqlens_q=None, cu_seqlens_k=None, dq=None, dk=None, dv=None,
        softmax_scale=None, is_causal=False,
    ):  # fmt: skip
        assert cu_seqlens_q is cu_seqlens_k is None
        backward(dout, q, k, v, out, softmax_lse, dq, dk, dv, is_causal)

    module._flash_attn_forward, module._flash_attn_backward = _flash_attn_forward, _flash_attn_backward
    return {"flash_attn_interface": module}


def library_4():
    """What is used of the signatures of flash-attn 4."""
    module = ModuleType("flash_attn.cute.interface")

    def _flash_attn_fwd(
        q, k, v, qv=None, softmax_scale=None, causal=False, return_lse=False, out=None, lse=None
    ):
        assert return_lse and out is lse is None
        return forward(q, k, v, softmax_scale, causal)

    def _flash_attn_bwd(q, k, v, out, dout, lse, softmax_scale=None, causal=False, dq=None, dk=None, dv=None):
        backward(dout, q, k, v, out, lse, dq, dk, dv, causal)
        return dq, dk, dv

    module._flash_attn_fwd, module._flash_attn_bwd = _flash_attn_fwd, _flash_attn_bwd
    package, cute = ModuleType("flash_attn"), ModuleType("flash_attn.cute")
    cute.interface = module
    return {"flash_attn": package, "flash_attn.cute": cute, "flash_attn.cute.interface": module}


GENERATIONS = [(library_2, generation_2), (library_3, generation_3), (library_4, generation_4)]


@pytest.mark.parametrize(("library", "load"), GENERATIONS)
@pytest.mark.parametrize(
    "piece", [Slice(0, 32, 0, 32, "causal"), Slice(16, 32, 0, 32, "full"), Slice(0, 32, 0, 16, "full")]
)
def test_a_generation_is_the_same_local_kernel_as_ours(library, load, piece, monkeypatch):
    for name, module in library().items():
        monkeypatch.setitem(sys.modules, name, module)
    check(RectangleKernel(load()), piece)


def check(kernel, piece):
    """A kernel over rectangles beside ours, forward and gradients."""
    generator = torch.Generator().manual_seed(0)
    q, dout = (torch.randn(4, 32, 16, generator=generator) for _ in range(2))
    k, v = (torch.randn(2, 32, 16, generator=generator) for _ in range(2))
    shape = (4, 2, 16, torch.float32, torch.device("cpu"))
    ours, theirs = (one.plan([piece], 32, 32, *shape) for one in (segments, kernel))
    (out, lse), found = segments.forward(q, k, v, ours), kernel.forward(q, k, v, theirs)
    gradients = segments.backward(q, k, v, out, lse, dout, ours)
    got = kernel.backward(q, k, v, out, lse, dout, theirs)
    for right, one in zip((out, lse, *gradients), (*found, *got), strict=True):
        assert one.is_contiguous()
        torch.testing.assert_close(one, right, rtol=1e-5, atol=1e-5)


def cudnn_forward(query, key, value, attn_bias, compute_log_sumexp, dropout_p, is_causal, *, scale):
    """The signature and results of torch's operator: out [1, heads, rows, D], lse [1, heads, rows, 1]."""
    assert attn_bias is None and compute_log_sumexp and dropout_p == 0.0 and scale == query.shape[-1] ** -0.5
    out = torch.empty_like(query[0])
    lse = Plain().forward(query[0], key[0], value[0], out, is_causal)
    return out[None], lse[None, ..., None], None, None, query.shape[2], key.shape[2], None, None, None


def cudnn_backward(
    grad_out, query, key, value, out, logsumexp, philox_seed, philox_offset, attn_bias, cum_seq_q, cum_seq_k, max_q,
    max_k, dropout_p, is_causal, *, scale,
):  # fmt: skip
    assert attn_bias is cum_seq_q is cum_seq_k is None and (max_q, max_k) == (query.shape[2], key.shape[2])
    gradients = tuple(torch.empty_like(x[0]) for x in (query, key, value))
    tensors = (query[0], key[0], value[0], out[0], logsumexp[0, ..., 0], grad_out[0])
    Plain().backward(*tensors, gradients, is_causal)
    return tuple(gradient[None] for gradient in gradients)


@pytest.mark.parametrize(
    "piece", [Slice(0, 32, 0, 32, "causal"), Slice(16, 32, 0, 32, "full"), Slice(0, 32, 0, 16, "full")]
)
def test_cudnn_is_the_same_local_kernel_as_ours(piece):
    check(RectangleKernel(CudnnAttention(cudnn_forward, cudnn_backward), square=True), piece)


def test_cudnn_refuses_a_causal_rectangle_that_is_not_square():
    kernel = RectangleKernel(CudnnAttention(cudnn_forward, cudnn_backward), square=True)
    shape = (4, 2, 16, torch.float32, torch.device("cpu"))
    with pytest.raises(UnsupportedError, match="not square"):
        kernel.plan([Slice(0, 16, 0, 32, "causal")], 16, 32, *shape)
