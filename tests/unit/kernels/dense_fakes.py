"""Stand-ins for the dense libraries: the documented call, computed in plain torch from what it was given."""

import sys
from types import SimpleNamespace
from typing import NamedTuple

import torch
from sparse_fakes import Attend, attend, install, kept_cells


def band(rows, columns, left, right, top_left=False):
    """Cells of a window in flash-attention's convention: inclusive distances, -1 (or None) for no bound."""
    i, j = torch.arange(rows)[:, None] + (0 if top_left else columns - rows), torch.arange(columns)
    kept = torch.ones(rows, columns, dtype=torch.bool)
    if left is not None and left >= 0:
        kept &= j >= i - left
    if right is not None and right >= 0:
        kept &= j <= i + right
    return kept


def packed_cells(queries, keys, longest_q, longest_k, causal, top_left=False):
    """Cells of packed sequences; lengths must be int32 and the longest ones Python's integers that are right."""
    assert queries.dtype == keys.dtype == torch.int32 and queries[0] == keys[0] == 0
    assert type(longest_q) is type(longest_k) is int
    assert (longest_q, longest_k) == (int(queries.diff().max()), int(keys.diff().max()))
    kept = torch.zeros(int(queries[-1]), int(keys[-1]), dtype=torch.bool)
    for q0, q1, k0, k1 in zip(
        queries.tolist(), queries[1:].tolist(), keys.tolist(), keys[1:].tolist(), strict=False
    ):
        kept[q0:q1, k0:k1] = band(q1 - q0, k1 - k0, -1, 0 if causal else -1, top_left)
    return kept


def over_tokens(q, k, v, kept):
    """attend over [tokens, heads, D], contiguous as kernels want them."""
    assert all(tensor.is_contiguous() and tensor.dim() == 3 for tensor in (q, k, v))
    return attend(*(tensor.transpose(0, 1) for tensor in (q, k, v)), kept).transpose(0, 1)


def flash_attention_1(monkeypatch) -> None:
    """flash-attn 1.x: packed sequences with equal heads, causal aligned at the top left."""

    def unpadded(q, k, v, queries, keys, longest_q, longest_k, dropout_p, softmax_scale=None, causal=False):
        assert q.shape[1] == k.shape[1] == v.shape[1] and dropout_p == 0
        return over_tokens(q, k, v, packed_cells(queries, keys, longest_q, longest_k, causal, top_left=True))

    install(monkeypatch, "flash_attn.flash_attn_interface", flash_attn_unpadded_func=unpadded)


def _whole_and_packed(no_bound, results):
    def whole(q, k, v, causal=False, window_size=(no_bound, no_bound)):
        assert len(q) == 1 and (no_bound is not None or -1 not in window_size)
        left, right = window_size
        kept = band(q.shape[1], k.shape[1], left, 0 if causal else right)
        return results(over_tokens(q[0], k[0], v[0], kept)[None])

    def packed(q, k, v, cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, causal=False):
        kept = packed_cells(cu_seqlens_q, cu_seqlens_k, max_seqlen_q, max_seqlen_k, causal)
        return results(over_tokens(q, k, v, kept))

    return {"flash_attn_func": whole, "flash_attn_varlen_func": packed}


def flash_attention_2(monkeypatch) -> None:
    """flash-attn 2.x: out alone."""
    install(monkeypatch, "flash_attn.flash_attn_interface", **_whole_and_packed(-1, lambda out: out))


def flash_attention_3(monkeypatch) -> None:
    """flash_attn_interface, in the version that returns the log-sum-exp too."""
    install(monkeypatch, "flash_attn_interface", **_whole_and_packed(-1, lambda out: (out, None)))


class BlockSparseTensorsTorch(NamedTuple):
    """As flash_attn.cute.block_sparsity has it, as far as it is used."""

    mask_block_cnt: torch.Tensor
    mask_block_idx: torch.Tensor
    full_block_cnt: torch.Tensor
    full_block_idx: torch.Tensor
    block_size: tuple[int, int]


def flash_attention_4(monkeypatch, capability=(9, 0)) -> None:
    """flash-attn-4: None for no bound, the log-sum-exp too; a mask_mod, here plain Python, over block lists."""
    native = _whole_and_packed(None, lambda out: (out, None))

    def cells(blocks, mask_mod, aux, rows, columns):
        """Blocks by row of the first index; mask_mod takes it as the query."""
        size = blocks.block_size[0]
        assert blocks.block_size == (size, size)
        partial = kept_cells(blocks.mask_block_cnt[0], blocks.mask_block_idx[0], rows, columns, size)[0]
        full = kept_cells(blocks.full_block_cnt[0], blocks.full_block_idx[0], rows, columns, size)[0]
        masked = torch.stack([mask_mod(0, 0, [row], torch.arange(columns), None, aux) for row in range(rows)])
        return partial, full, masked

    def whole(q, k, v, *, mask_mod=None, aux_tensors=None, block_sparse_tensors=None, **options):
        back = options.pop("block_sparse_tensors_bwd", None)
        if mask_mod is None:
            return native["flash_attn_func"](q, k, v, **options)
        assert not options and all(aux.dtype == torch.int32 and aux.dim() == 1 for aux in aux_tensors)
        q, k, v = (tensor[0].transpose(0, 1) for tensor in (q, k, v))
        sizes = q.shape[1], k.shape[1]
        partial, full, masked = cells(block_sparse_tensors, mask_mod, aux_tensors, *sizes)
        partial_back, full_back, _ = cells(back, mask_mod, aux_tensors, *reversed(sizes))
        kept, kept_back = full | partial & masked, full_back.mT | partial_back.mT & masked
        return Attend.apply(q, k, v, kept, kept_back).transpose(0, 1)[None], None

    functions = native | {"flash_attn_func": whole}
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device=None: capability)
    cute = SimpleNamespace(jit=lambda function: function)
    install(monkeypatch, "cutlass", cute=cute, Int32=int, range_constexpr=range)
    install(
        monkeypatch,
        "flash_attn.cute",
        utils=SimpleNamespace(scalar_to_ssa=lambda value, dtype: value),
        **functions,
    )
    install(monkeypatch, "flash_attn.cute.block_sparsity", BlockSparseTensorsTorch=BlockSparseTensorsTorch)
    monkeypatch.delitem(sys.modules, "longca.kernels.fa4_mask_mod", raising=False)


def flashinfer(monkeypatch) -> None:
    """FlashInfer: ragged prefill, planned before it runs; a window's left side alone."""

    class Wrapper:
        def __init__(self, workspace, layout):
            assert workspace.dtype == torch.uint8 and layout == "NHD"
            self._backend = "auto"

        def plan(self, queries, keys, q_heads, kv_heads, head_dim, *, causal, window_left, q_data_type):
            longest = (int(queries.diff().max()), int(keys.diff().max()))
            self.kept = packed_cells(queries, keys, *longest, causal)
            if window_left >= 0:
                self.kept &= band(*self.kept.shape, window_left, -1)
            self.shape, self._backend = (q_heads, kv_heads, head_dim, q_data_type), "fa3"

        def run(self, q, k, v):
            assert self.shape == (q.shape[1], k.shape[1], q.shape[2], q.dtype)
            return over_tokens(q, k, v, self.kept)

    install(monkeypatch, "flashinfer", BatchPrefillWithRaggedKVCacheWrapper=Wrapper)
