"""Stand-ins for the block-sparse libraries: the documented call, computed in plain torch from what it was given."""

import sys
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple

import torch


def install(monkeypatch, name: str, **content: Any) -> None:
    """Put a module with this content, and the packages above it, where an import finds it."""
    parts = name.split(".")
    for depth in range(1, len(parts) + 1):
        path = ".".join(parts[:depth])
        if path not in sys.modules or depth == len(parts):
            monkeypatch.setitem(sys.modules, path, ModuleType(path))
    sys.modules[name].__dict__.update(content)


def kept_cells(
    counts: torch.Tensor, lists: torch.Tensor, rows: int, columns: int, block: int
) -> torch.Tensor:
    """Lists [heads, block rows, width] with their counts as cells, bool [heads, rows, columns]."""
    assert counts.dtype == lists.dtype == torch.int32
    blocks = torch.zeros(*counts.shape, -(-columns // block), dtype=torch.bool)
    for head in range(len(counts)):
        for row in range(counts.shape[1]):
            blocks[head, row, lists[head, row, : counts[head, row]].long()] = True
    cells = blocks.repeat_interleave(block, 1).repeat_interleave(block, 2)
    return cells[:, :rows, :columns]


def attend(q, k, v, kept):
    """q [heads, queries, D], k, v [KV heads, keys, D], kept [heads, queries, keys]."""
    k, v = (tensor.repeat_interleave(len(q) // len(k), 0) for tensor in (k, v))
    scores = (q @ k.mT * q.shape[-1] ** -0.5).masked_fill(~kept, float("-inf"))
    return torch.softmax(scores, -1).nan_to_num(0.0) @ v


class Attend(torch.autograd.Function):
    """Attention whose backward follows cells of its own, as kernels do that take a second list for it."""

    @staticmethod
    def forward(ctx, q, k, v, kept, kept_backward):
        ctx.save_for_backward(q, k, v, kept_backward)
        return attend(q, k, v, kept)

    @staticmethod
    def backward(ctx, dout):
        q, k, v, kept = ctx.saved_tensors
        leaves = [tensor.detach().requires_grad_() for tensor in (q, k, v)]
        with torch.enable_grad():
            return (*torch.autograd.grad(attend(*leaves, kept), leaves, dout), None, None)


def fastvideo(monkeypatch) -> None:
    """fastvideo-kernel: equal heads, 64 x 64 blocks, lists as wide as the map, gradients in float32."""

    def forward(q, k, v, lists, counts, sizes):
        assert q.shape == k.shape == v.shape and len(q) == 1 and q.is_contiguous()
        assert lists.shape == (*counts.shape, k.shape[2] // 64) and (sizes == 64).all()
        out = attend(q[0], k[0], v[0], kept_cells(counts[0], lists[0], q.shape[2], k.shape[2], 64))
        return out[None], torch.zeros(*q.shape[:3], 1)

    def backward(q, k, v, out, lse, dout, lists, counts, sizes):
        assert lse.shape == (*q.shape[:3], 1) and out.shape == dout.shape
        assert lists.shape == (*counts.shape, q.shape[2] // 64)
        kept = kept_cells(counts[0], lists[0], k.shape[2], q.shape[2], 64).mT
        leaves = [tensor[0].detach().requires_grad_() for tensor in (q, k, v)]
        with torch.enable_grad():
            gradients = torch.autograd.grad(attend(*leaves, kept), leaves, dout[0])
        return [gradient[None].float() for gradient in gradients]

    library = {"block_sparse_fwd": forward, "block_sparse_bwd": backward}
    install(monkeypatch, "fastvideo_kernel._C", fastvideo_kernel_ops=SimpleNamespace(**library))
    install(monkeypatch, "fastvideo_kernel._C.fastvideo_kernel_ops", **library)


class BlockSparseTensorsTorch(NamedTuple):
    """As flash_attn.cute.block_sparsity has it, as far as it is used."""

    mask_block_cnt: torch.Tensor
    mask_block_idx: torch.Tensor
    full_block_cnt: torch.Tensor
    full_block_idx: torch.Tensor
    block_size: tuple[int, int]


def flash_attention_4(monkeypatch) -> None:
    """FlashAttention 4: [1, tokens, heads, D], no partial blocks without a mask_mod, columns first for the backward."""

    def cells(blocks, heads, rows, columns):
        assert blocks.block_size[0] == blocks.block_size[1]
        assert blocks.mask_block_cnt.shape == blocks.full_block_cnt.shape and not blocks.mask_block_cnt.any()
        assert blocks.full_block_cnt.shape[:2] == (1, heads)
        lists = blocks.full_block_cnt[0], blocks.full_block_idx[0]
        return kept_cells(*lists, rows, columns, blocks.block_size[0])

    def flash_attn_func(q, k, v, *, block_sparse_tensors, block_sparse_tensors_bwd):
        q, k, v = (tensor[0].transpose(0, 1) for tensor in (q, k, v))
        sizes = q.shape[1], k.shape[1]
        kept = cells(block_sparse_tensors, len(q), *sizes)
        back = block_sparse_tensors_bwd
        kept_backward = None if back is None else cells(back, len(q), *reversed(sizes)).mT
        return Attend.apply(q, k, v, kept, kept_backward).transpose(0, 1)[None], None

    install(monkeypatch, "flash_attn.cute", flash_attn_func=flash_attn_func)
    install(monkeypatch, "flash_attn.cute.block_sparsity", BlockSparseTensorsTorch=BlockSparseTensorsTorch)


def flashinfer(monkeypatch) -> None:
    """FlashInfer: a map and sizes for each KV head, planned before it runs."""

    class Wrapper:
        def __init__(self, workspace):
            assert workspace.dtype == torch.uint8
            self._backend = "auto"

        def plan(self, kept, rows, columns, q_heads, kv_heads, head_dim, q_data_type):
            assert kept.dtype == torch.bool and rows.dtype == columns.dtype == torch.int32
            heads = [
                one.repeat_interleave(row, 0).repeat_interleave(column, 1)
                for one, row, column in zip(kept, rows, columns, strict=True)
            ]
            self.kept = torch.stack(heads).repeat_interleave(q_heads // kv_heads, 0)
            self._backend = "fa3"

        def run(self, q, k, v):
            return attend(q, k, v, self.kept)

    install(monkeypatch, "flashinfer", VariableBlockSparseAttentionWrapper=Wrapper)


def block_sparse_attn(monkeypatch) -> None:
    """block_sparse_attn: [tokens, heads, D], lists that descend and end in -1, head n by the map its type names."""

    def convert(kept):
        width = kept.shape[-1]
        columns = torch.where(kept, torch.arange(width), -1)
        return columns.sort(-1, descending=True).values.int()

    def forward(q, k, v, q_ends, k_ends, m, n, types, streaming, lists, most_q, most_k, **options):
        assert (m, n) == (128, 128) and streaming is None and not options["is_causal"]
        assert q_ends.tolist() == [0, most_q] and k_ends.tolist() == [0, most_k] and (types > 0).all()
        assert options["softmax_scale"] == q.shape[-1] ** -0.5
        lists = lists[0, types.long() - 1]
        counts = (lists >= 0).sum(-1, dtype=torch.int32)
        kept = kept_cells(counts, lists, len(q), len(k), 128)
        out = attend(*(tensor.transpose(0, 1) for tensor in (q, k, v)), kept)
        return out.transpose(0, 1), None, None, None

    install(
        monkeypatch,
        "block_sparse_attn.block_sparse_attn_interface",
        convert_blockmask_row_reverse=convert,
        _block_sparse_attn_forward=forward,
    )
